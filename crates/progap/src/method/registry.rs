//! The list of methods, and [`MethodKind`], by which settings and files name one of them.

use super::{Capabilities, Method, MethodSpec};
use crate::{Error, Result};

/// Of each method its name, its variant of [`MethodKind`], its file and its type.
macro_rules! methods {
    ($($(#[$when:meta])? $name:literal $kind:ident => $file:ident::$method:ident,)*) => {
        /// How a model is trained. [`catalogue`](super::catalogue) says what each of them does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs, reason = "the catalogue describes them")]
        pub enum MethodKind { $($(#[$when])? #[serde(rename = $name)] $kind,)* }

        impl MethodKind {
            /// All methods.
            pub const ALL: &[MethodKind] = &[$($(#[$when])? MethodKind::$kind,)*];

            /// The name, as it is written in commands and files.
            pub fn name(self) -> &'static str {
                match self { $($(#[$when])? MethodKind::$kind => $name,)* }
            }

            pub(crate) fn method(self) -> &'static dyn Method {
                match self { $($(#[$when])? MethodKind::$kind => &super::$file::$method,)* }
            }
        }
    };
}

// A line here, a `mod` line and the file are all that a method is.
methods! {
    "progap" Progap => progap::PUBLISHED,
    "progap-labels" ProgapLabels => progap_labels::LABELS,
    "progap-views" ProgapViews => views::TwoViews,
    "gap" Gap => gap::Gap,
    "mlp" Mlp => mlp::Mlp,
    "sage" Sage => sage::GraphSage,
    "edge-rand" EdgeRand => edge_rand::EdgeRand,
    "lpgnet" Lpgnet => lpgnet::LpgNet,
    "dp-gnn" DpGnn => dp_gnn::DpGnn,
    #[cfg(test)] "neighbour-labels" NeighbourLabels => example::NeighbourLabels,
}

impl MethodKind {
    /// What it is.
    pub fn spec(self) -> &'static MethodSpec {
        self.method().spec()
    }

    /// What it can do, and what it needs.
    pub fn can(self) -> Capabilities {
        self.spec().can
    }

    /// Whether its guarantee has a delta; without one it is pure.
    pub fn has_delta(self) -> bool {
        !self.can().is_pure
    }
}

impl std::fmt::Display for MethodKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for MethodKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<MethodKind> {
        let all = || MethodKind::ALL.iter().copied();
        all().find(|method| method.name() == text).ok_or_else(|| {
            Error::out_of_range("method", text, all().map(MethodKind::name).collect::<Vec<_>>().join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    /// The line in the registry and the file beside it are of the same method, which is found by its name.
    #[test]
    fn every_method_is_itself() {
        for &method in MethodKind::ALL {
            assert_eq!(method.spec().method, method);
            assert_eq!(method.name().parse::<MethodKind>().expect("a name"), method);
            assert_eq!(serde_json::to_value(method).expect("JSON"), method.name());
            for &level in method.spec().levels {
                let settings = Settings::of(method, level);
                assert_eq!((settings.method, settings.level), (method, level));
                let _ = settings.checked().unwrap_or_else(|e| panic!("{method} {level}: {e}"));
            }
        }
        assert!("gcn".parse::<MethodKind>().is_err());
    }
}
