//! Declarations of settings, for everyone who offers them by name: the command, its files, experiments, bindings.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Level, MethodKind, Settings, heuristics};
use crate::{Error, Result};

/// The values that a setting can have.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// On or off.
    Switch,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// One of these names, each with what it means.
    Choice(fn() -> Vec<(&'static str, &'static str)>),
}

/// The levels at which a setting decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// At every level.
    Everywhere,
    /// Where anything is protected.
    Private,
    /// Where edges are protected.
    Edge,
    /// Where records of nodes are protected.
    Node,
}

/// Why a setting decides nothing in a run with these settings; `None` where it does.
pub(super) type Need = fn(&Settings) -> Option<&'static str>;

/// Whether something is true of a run with these settings.
pub(super) type Costs = fn(&Settings) -> bool;

/// One setting: its name, what it can be, and what is said about it.
///
/// ```
/// use progap::settings::{Declaration, Level, MethodKind, Settings};
///
/// let clip = Declaration::find("clip")?;
/// assert_eq!(clip.help, "Norm to which gradients are clipped");
/// assert_eq!(clip.default(MethodKind::ProgapLabels, Level::Node), Some(1.0.into()));
/// assert_eq!(clip.default(MethodKind::ProgapLabels, Level::Edge), None, "it decides nothing there");
///
/// let mut settings = Settings::new(Level::Node);
/// clip.set(&mut settings, 0.5.into())?;
/// assert_eq!(settings.clip, 0.5);
/// # Ok::<(), progap::Error>(())
/// ```
#[derive(Debug)]
pub struct Declaration {
    /// Its name in config.toml and in `Settings`.
    pub name: &'static str,
    /// Its description, in one line without a full stop.
    pub help: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether it can be left to the program, which then chooses: `auto`.
    pub optional: bool,
    /// Where it decides anything, as far as the level says so.
    pub scope: Scope,
    /// How it is offered.
    pub about: About,
    pub(super) read: fn(&Settings) -> Value,
    pub(super) write: fn(&mut Settings, Value) -> serde_json::Result<()>,
    pub(super) number: fn(&Settings) -> Option<f64>,
}

/// How a setting is offered: what stands beside its name, its type and its default.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The heading under which it is listed; none for what everyone looks for first.
    pub heading: Option<&'static str>,
    /// Its name in a sentence, where that is another.
    pub words: Option<&'static str>,
    /// A short name of one letter.
    pub short: Option<char>,
    /// A second name.
    pub alias: Option<&'static str>,
    /// Whether it is offered at all, by its own name.
    pub offered: bool,
    /// Whether it is part of the budget, which is compared by also where it decides nothing.
    pub budget: bool,
    /// Whether queries or their noise depend on it in a run with these settings.
    pub(super) costs: Costs,
    pub(super) range: Option<(f64, f64)>,
    pub(super) needs: &'static [Need],
}

impl About {
    const fn new() -> About {
        About {
            heading: None,
            words: None,
            short: None,
            alias: None,
            offered: true,
            budget: false,
            costs: |_| false,
            range: None,
            needs: &[],
        }
    }

    /// Listed first.
    pub(super) const FIRST: About = About::new();

    pub(super) const fn under(heading: &'static str) -> About {
        About { heading: Some(heading), ..About::new() }
    }

    pub(super) const fn within(self, low: f64, high: f64) -> About {
        About { range: Some((low, high)), ..self }
    }

    pub(super) const fn words(self, words: &'static str) -> About {
        About { words: Some(words), ..self }
    }

    pub(super) const fn short(self, short: char) -> About {
        About { short: Some(short), ..self }
    }

    pub(super) const fn alias(self, alias: &'static str) -> About {
        About { alias: Some(alias), ..self }
    }

    pub(super) const fn needs(self, needs: &'static [Need]) -> About {
        About { needs, ..self }
    }

    /// Queries or their noise depend on it where this is true.
    pub(super) const fn costs(self, costs: Costs) -> About {
        About { costs, ..self }
    }

    /// Chosen by other means than its name.
    pub(super) const fn not_offered(self) -> About {
        About { offered: false, ..self }
    }

    pub(super) const fn budget(self) -> About {
        About { budget: true, ..self }
    }
}

/// The type of a setting.
pub trait SettingType: Serialize + DeserializeOwned + Copy {
    /// The type of a value that is given for it.
    type Given: Into<Self>;
    /// The kind of values that it can have.
    const KIND: Kind;
    /// Whether it can be left out.
    const OPTIONAL: bool = false;

    /// Its value, for a range.
    fn number(self) -> Option<f64> {
        None
    }
}

macro_rules! numbers {
    ($($type:ty => $kind:ident, $number:expr;)*) => {
        $(impl SettingType for $type {
            type Given = $type;
            const KIND: Kind = Kind::$kind;

            fn number(self) -> Option<f64> {
                let number: fn($type) -> Option<f64> = $number;
                number(self)
            }
        })*
    };
}

numbers! {
    usize => Whole, |value| Some(value as f64);
    u32 => Whole, |value| Some(value.into());
    u64 => Whole, |value| Some(value as f64);
    f64 => Number, Some;
    bool => Switch, |_| None;
}

impl<T: SettingType<Given = T>> SettingType for Option<T> {
    type Given = T;
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;

    fn number(self) -> Option<f64> {
        self.and_then(T::number)
    }
}

impl SettingType for MethodKind {
    type Given = MethodKind;
    const KIND: Kind =
        Kind::Choice(|| MethodKind::ALL.iter().map(|method| (method.name(), method.spec().what)).collect());
}

impl Declaration {
    /// The setting of that name; hyphens may stand for underscores.
    ///
    /// # Errors
    /// A name that no setting has.
    pub fn find(name: &str) -> Result<&'static Declaration> {
        let wanted = name.trim().replace('-', "_");
        Settings::declarations().iter().find(|declaration| declaration.name == wanted).ok_or_else(|| {
            let offered = Settings::declarations().iter().filter(|known| known.about.offered);
            let known: Vec<&str> = offered.map(|known| known.name).collect();
            Error::unsuitable(format!("there is no setting {name:?}; there are {}", known.join(", ")))
        })
    }

    /// Its name in a sentence.
    pub fn words(&self) -> String {
        self.about.words.map_or_else(|| self.name.replace('_', " "), String::from)
    }

    /// Its value in some settings; null where it is left to the program.
    pub fn get(&self, settings: &Settings) -> Value {
        (self.read)(settings)
    }

    /// Gives it a value. Whether that can work beside the other settings is for [`Settings::checked`] to say.
    ///
    /// # Errors
    /// A value of another kind.
    pub fn set(&self, settings: &mut Settings, value: Value) -> Result<()> {
        let value = match value {
            Value::String(auto) if auto == "auto" && self.optional => Value::Null,
            other => other,
        };
        // JSON that was read from text has whole numbers where a number may be meant, which serde takes for either.
        (self.write)(settings, value.clone()).map_err(|_| {
            let name = self.name;
            // JSON has no such numbers: they come as text.
            if let (Some(number), Some((low, high))) = (not_finite(&value), self.about.range) {
                let expected = format!("{} to {high}", short_number(low));
                return Error::out_of_range(name, number, expected);
            }
            Error::unsuitable(format!("the setting {name} cannot be {value}: give {}", self.expected()))
        })
    }

    /// A value from text, as it is written in commands.
    ///
    /// # Errors
    /// Text that is no value of this kind.
    pub fn parse(&self, text: &str) -> Result<Value> {
        let text = text.trim();
        let value = match self.kind {
            _ if self.optional && text == "auto" => Some(Value::Null),
            Kind::Switch => text.parse::<bool>().ok().map(Value::from),
            Kind::Whole => text.parse::<u64>().ok().map(Value::from),
            Kind::Number => text.parse::<f64>().ok().map(|number| match number.is_finite() {
                true => number.into(),
                false => text.into(),
            }),
            Kind::Choice(all) => {
                all().into_iter().find(|(name, _)| *name == text).map(|(name, _)| name.into())
            }
        };
        value.ok_or_else(|| {
            let name = self.name;
            Error::unsuitable(format!("the setting {name} cannot be {text:?}: give {}", self.expected()))
        })
    }

    /// The values that are possible, in words.
    pub fn expected(&self) -> String {
        let range = match self.about.range {
            Some((low, high)) => format!(" from {} to {}", short_number(low), short_number(high)),
            None => String::new(),
        };
        let values = match self.kind {
            Kind::Switch => "true or false".into(),
            Kind::Whole => format!("a whole number{range}"),
            Kind::Number => format!("a number{range}"),
            Kind::Choice(all) => all().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        };
        if self.optional { format!("{values}, or auto") } else { values }
    }

    /// Whether public facts can decide it where nobody gives it, see [`Draft`](super::Draft).
    pub fn follows_from_facts(&self) -> bool {
        heuristics::FOLLOWING.contains(&self.name)
    }

    /// Its default for a method at a level; `None` where it decides nothing, or the method has no such level.
    pub fn default(&self, method: MethodKind, level: Level) -> Option<Value> {
        let has_level = method.spec().levels.contains(&level);
        let settings = has_level.then(|| Settings::of(method, level))?;
        let decides = settings.without_effect(self.name).is_none();
        decides.then(|| self.get(&settings))
    }

    pub(super) fn check_range(&self, settings: &Settings) -> Result<()> {
        match (self.about.range, (self.number)(settings)) {
            (Some((low, high)), Some(value)) => within(self.name, value, low, high),
            _ => Ok(()),
        }
    }
}

/// Refuses a number outside of a range.
pub(crate) fn within(name: &'static str, value: f64, low: f64, high: f64) -> Result<()> {
    if value.is_finite() && (low..=high).contains(&value) {
        return Ok(());
    }
    let expected = format!("{} to {high}", short_number(low));
    Err(Error::out_of_range(name, value, expected))
}

fn not_finite(value: &Value) -> Option<f64> {
    value.as_str()?.parse::<f64>().ok().filter(|number| !number.is_finite())
}

fn short_number(value: f64) -> String {
    if value > 0.0 && value < 1e-3 { format!("{value:e}") } else { value.to_string() }
}

/// Declares all settings: the struct with its defaults, what is known of each, and the front door's ways to give it.
///
/// An entry is: documentation, whose first paragraph is the help text; where it belongs ([`Scope`], in small letters;
/// `plain` for what has no builder); the name and type; the default, which may look at the level; and how it is
/// offered.
macro_rules! settings {
    (for $level:ident: $(
        $(#[doc = $doc:literal])+
        $(#[serde($($serde:tt)+)])?
        $scope:ident $name:ident: $type:ty = $default:expr, $about:expr;
    )+) => {
        /// Everything that decides a training run besides the data.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings {
            $($(#[doc = $doc])+ $(#[serde($($serde)+)])? pub $name: $type,)+
        }

        impl Settings {
            /// The defaults that methods have in common; of progap, the settings for embeddings as messages.
            pub fn plain($level: Level) -> Settings {
                Settings { $($name: $default,)+ }
            }

            /// Every setting, in the order of config.toml.
            pub fn declarations() -> &'static [Declaration] {
                static ALL: &[Declaration] = &[$(Declaration {
                    name: stringify!($name),
                    help: concat!($($doc,)+).trim_ascii(),
                    kind: <$type as SettingType>::KIND,
                    optional: <$type as SettingType>::OPTIONAL,
                    scope: settings!(@scope $scope),
                    about: $about,
                    read: |settings| serde_json::json!(settings.$name),
                    write: |settings, value| {
                        settings.$name = serde_json::from_value(value)?;
                        Ok(())
                    },
                    number: |settings| SettingType::number(settings.$name),
                },)+];
                ALL
            }
        }

        $(settings!(@builder $scope $name $type, $(#[doc = $doc])+);)+
    };
    (@scope everywhere) => { Scope::Everywhere };
    (@scope private) => { Scope::Private };
    (@scope edge) => { Scope::Edge };
    (@scope node) => { Scope::Node };
    (@scope plain) => { Scope::Everywhere };
    (@scope edge_plain) => { Scope::Edge };
    (@scope private_plain) => { Scope::Private };
    (@builder everywhere $name:ident $type:ty, $(#[doc = $doc:literal])+) => {
        settings!(@method Unprotected $name $type, $(#[doc = $doc])+);
        settings!(@method Edge $name $type, $(#[doc = $doc])+);
        settings!(@method Node $name $type, $(#[doc = $doc])+);
    };
    (@builder private $name:ident $type:ty, $(#[doc = $doc:literal])+) => {
        settings!(@method Edge $name $type, $(#[doc = $doc])+);
        settings!(@method Node $name $type, $(#[doc = $doc])+);
    };
    (@builder edge $name:ident $type:ty, $(#[doc = $doc:literal])+) => {
        settings!(@method Edge $name $type, $(#[doc = $doc])+);
    };
    (@builder node $name:ident $type:ty, $(#[doc = $doc:literal])+) => {
        settings!(@method Node $name $type, $(#[doc = $doc])+);
    };
    (@builder $plain:ident $name:ident $type:ty, $(#[doc = $doc:literal])+) => {};
    (@method $owner:ident $name:ident $type:ty, $(#[doc = $doc:literal])+) => {
        impl $owner {
            $(#[doc = $doc])+
            #[must_use]
            pub fn $name(self, value: <$type as SettingType>::Given) -> $owner {
                $owner(self.0.with(stringify!($name), serde_json::json!(value)))
            }
        }
    };
}
pub(super) use settings;
