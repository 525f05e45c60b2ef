//! The list of methods: their modules, and [`Method`].

use super::Method;
use crate::{Error, Result};

/// Declares methods: of each its name, its variant of [`Method`], its file and its recipe.
macro_rules! methods {
    ($($name:literal $method:ident => $file:ident::$recipe:ident,)*) => {
        $(pub(crate) mod $file;)*

        /// How a model is trained. [`catalogue`] says what each of them does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs, reason = "the catalogue describes them")]
        pub enum Method { $(#[serde(rename = $name)] $method,)* }

        impl Method {
            /// All methods.
            pub const ALL: &[Method] = &[$(Method::$method,)*];

            /// The name, as it is written in commands and files.
            pub fn name(self) -> &'static str {
                match self { $(Method::$method => $name,)* }
            }

            pub(crate) fn entry(self) -> &'static catalogue::Entry {
                match self { $(Method::$method => &self::$file::ENTRY,)* }
            }

            pub(crate) fn recipe(self) -> &'static dyn Recipe {
                match self { $(Method::$method => &self::$file::$recipe,)* }
            }
        }
    };
}

impl Method {
    /// Whether its guarantee has a delta; without one it is pure.
    pub fn has_delta(self) -> bool {
        !self.recipe().is_pure()
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Method> {
        let all = || Method::ALL.iter().copied();
        all().find(|method| method.name() == text).ok_or_else(|| Error::Setting {
            name: "method",
            value: text.into(),
            expected: all().map(Method::name).collect::<Vec<_>>().join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line in the registry and the file beside it speak of the same method, which is found by its name.
    #[test]
    fn every_method_is_itself() {
        for &method in Method::ALL {
            assert_eq!(method.entry().method, method);
            assert_eq!(method.name().parse::<Method>().expect("a name"), method);
            assert_eq!(serde_json::to_value(method).expect("JSON"), method.name());
            for &level in method.entry().levels {
                let settings = method.recipe().defaults(level);
                assert_eq!((settings.method, settings.level), (method, level));
                let _ = settings.checked().unwrap_or_else(|e| panic!("{method} {level}: {e}"));
            }
        }
        assert!("gcn".parse::<Method>().is_err());
    }
}
