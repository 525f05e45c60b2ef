//! The list of methods: a line here and a file beside it are all that a method is.

use serde::{Deserialize, Serialize};

use super::recipe::Recipe;
use super::{dp_gnn, edge_rand, gap, lpgnet, mlp, progap, sage, views};
use crate::{Error, Result};

macro_rules! registry {
    ($($name:literal $method:ident => $recipe:expr,)*) => {
        /// How a model is trained. [`catalogue`](super::catalogue) says what each of them does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "the catalogue describes them")]
        pub enum Method { $(#[serde(rename = $name)] $method,)* }

        impl Method {
            /// All methods.
            pub const ALL: &[Method] = &[$(Method::$method,)*];

            /// The name, as it is written in commands and files.
            pub fn name(self) -> &'static str {
                match self { $(Method::$method => $name,)* }
            }

            pub(crate) fn recipe(self) -> &'static dyn Recipe {
                match self { $(Method::$method => &$recipe,)* }
            }
        }
    };
}

registry! {
    "progap" Progap => progap::ProGap,
    "views" Views => views::TwoViews,
    "gap" Gap => gap::Gap,
    "mlp" Mlp => mlp::Mlp,
    "sage" Sage => sage::GraphSage,
    "edge-rand" EdgeRand => edge_rand::EdgeRand,
    "lpgnet" Lpgnet => lpgnet::LpgNet,
    "dp-gnn" DpGnn => dp_gnn::DpGnn,
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
            assert_eq!(method.recipe().entry().method, method);
            assert_eq!(method.name().parse::<Method>().expect("a name"), method);
            assert_eq!(serde_json::to_value(method).expect("JSON"), method.name());
            for &level in method.recipe().entry().levels {
                let settings = method.recipe().defaults(level);
                assert_eq!((settings.method, settings.level), (method, level));
                let _ = settings.checked().unwrap_or_else(|e| panic!("{method} {level}: {e}"));
            }
        }
        assert!("gcn".parse::<Method>().is_err());
    }
}
