//! Language models as files configure them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{Diagnostic, Diagnostics, Map, Node, Place, Source, View, nearest};
use hotseat_model::recording::Played;
use hotseat_model::script::{Script, Scripted};
use hotseat_model::{ErrorKind, Live, Model, ModelError, Provider, PureModel, Secret, TimeLimits};

use super::shape::CONNECTOR;
use super::{Environment, millis, number};

/// A configured language model.
#[derive(Clone)]
pub enum Connector {
    /// It answers what a script says.
    Scripted(Arc<Script>),
    /// It answers what was recorded.
    Recorded {
        /// The file, as it is shown to people.
        file: Arc<str>,
        /// The recording.
        text: Arc<str>,
        /// Whether answers take as long as they took.
        in_recorded_time: bool,
    },
    /// It is asked over HTTP.
    Provider(Box<hotseat_model::Connector>),
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Connector::Scripted(script) => f.debug_tuple("Scripted").field(&script.name()).finish(),
            Connector::Recorded { file, .. } => f.debug_tuple("Recorded").field(file).finish(),
            Connector::Provider(connector) => f.debug_tuple("Provider").field(connector).finish(),
        }
    }
}

impl Connector {
    /// The model in real time: a new one, which has answered nothing yet.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn open(&self) -> Result<Arc<dyn Model>, ModelError> {
        Ok(match self {
            Connector::Scripted(script) => Arc::new(Live::new(Scripted::new(script.clone()))),
            Connector::Recorded { file, text, in_recorded_time } => {
                Arc::new(Live::new(played(file, text, *in_recorded_time)?))
            }
            Connector::Provider(connector) => hotseat_model::Connector::clone(connector).open()?,
        })
    }

    /// The model without clock and network: a new one, which has answered nothing yet. None for one that needs them.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn pure(&self) -> Result<Option<Box<dyn PureModel>>, ModelError> {
        Ok(match self {
            Connector::Scripted(script) => Some(Box::new(Scripted::new(script.clone()))),
            Connector::Recorded { file, text, in_recorded_time } => {
                Some(Box::new(played(file, text, *in_recorded_time)?))
            }
            Connector::Provider(_) => None,
        })
    }
}

fn played(file: &str, text: &str, in_recorded_time: bool) -> Result<Played, ModelError> {
    let played = Played::parse(file, text)
        .map_err(|error| ModelError::new(ErrorKind::Configuration, error.to_string()))?;
    Ok(if in_recorded_time { played.in_recorded_time() } else { played })
}

/// What a million tokens of a model cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Tokens of requests.
    pub input: f64,
    /// Tokens of replies.
    pub output: f64,
    /// Tokens of requests that the provider had in a cache.
    pub cached_input: f64,
}

impl Price {
    fn of(map: &Map<'_>) -> Option<Price> {
        let number = |key: &str| map.number(key).and_then(serde_json::Number::as_f64);
        let input = number("input")?;
        Some(Price {
            input,
            output: number("output")?,
            cached_input: number("cached_input").unwrap_or(input),
        })
    }
}

/// Nobody is paid for tokens.
fn prices(view: &View<'_>, mistakes: &mut Diagnostics) {
    let shape = CONNECTOR.shape_of(view.node);
    let map = shape.and_then(|shape| Map::of(view.node, view.source, shape));
    let Some(price) = map.as_ref().and_then(|map| map.map("price")) else { return };
    for key in ["input", "output", "cached_input"] {
        if price.number(key).and_then(serde_json::Number::as_f64).is_some_and(|number| number < 0.0) {
            let mistake = Diagnostic::new(format!("`{key}` is a price: 0 or more"));
            mistakes.push(Diagnostic { place: price.place_of(key), ..mistake });
        }
    }
}

/// Connectors by name, as they are written: variables of the environment are looked up when one is used.
#[derive(Debug, Clone, Default)]
pub struct Connectors(BTreeMap<String, Written>);

/// A connector as it is written.
#[derive(Debug, Clone)]
struct Written {
    source: Arc<Source>,
    node: Node,
    /// The folder in which its files are.
    folder: PathBuf,
    /// Where its name stands.
    name: Place,
}

impl Connectors {
    /// Takes the connectors of a mapping that was checked to be one of names to [`CONNECTOR`]s. Paths in it begin at
    /// `folder`.
    pub fn add(&mut self, view: View<'_>, folder: &Path, mistakes: &mut Diagnostics) {
        for (name, place, view) in view.entries().into_iter().flatten() {
            if let Some(first) = self.0.get(name) {
                let message = format!("two connectors are called `{name}`");
                let mistake = Diagnostic::new(message).at(place).also(first.name.clone(), "the first");
                mistakes.push(mistake);
                continue;
            }
            prices(&view, mistakes);
            let (source, node, folder) = (view.source.clone(), view.node.clone(), folder.to_path_buf());
            self.0.insert(name.to_owned(), Written { source, node, folder, name: place });
        }
    }

    /// Takes the connectors of another file under names that are free. Those that are there already stay.
    pub fn add_missing(&mut self, other: &Connectors) {
        for (name, written) in &other.0 {
            self.0.entry(name.clone()).or_insert_with(|| written.clone());
        }
    }

    /// What the tokens of the connectors cost that have a price: by the name of the connector, and by the model that it
    /// names, as long as that is no variable.
    pub fn prices(&self) -> impl Iterator<Item = (&str, Option<&str>, Price)> {
        self.0.iter().filter_map(|(name, written)| {
            let map = Map::of(&written.node, &written.source, CONNECTOR.shape_of(&written.node)?)?;
            let has_model = matches!(map.text("type"), Some("openai" | "anthropic"));
            let model =
                if has_model { map.text("model").filter(|model| !model.contains("${")) } else { None };
            Some((name.as_str(), model, Price::of(&map.map("price")?)?))
        })
    }

    /// Where the connector of a name is written.
    pub(super) fn place(&self, name: &str) -> Option<Place> {
        self.0.get(name).map(|written| written.node.place(&written.source))
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The connector of a name, with its variables and files. `used` is where the name is used.
    ///
    /// # Errors
    /// When there is none, and everything that is wrong with it.
    pub fn get(
        &self,
        name: &str,
        used: Option<Place>,
        environment: Environment<'_>,
    ) -> Result<Connector, Diagnostics> {
        let Some(written) = self.0.get(name) else {
            let mistake =
                Diagnostic { place: used, ..Diagnostic::new(format!("there is no connector `{name}`")) };
            let help = match nearest(name, self.0.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None if self.0.is_empty() => "connectors stand under `connectors`".to_owned(),
                None => {
                    let known: Vec<String> = self.0.keys().map(|name| format!("`{name}`")).collect();
                    format!("there are {}", known.join(", "))
                }
            };
            return Err(mistake.help(help).into());
        };
        let mut mistakes = Diagnostics::new();
        let shape = CONNECTOR.shape_of(&written.node);
        let map = shape.and_then(|shape| Map::of(&written.node, &written.source, shape));
        let read = map.and_then(|map| connector(&map, &written.folder, environment, &mut mistakes));
        match read {
            Some(connector) if mistakes.is_empty() => Ok(connector),
            _ => Err(mistakes),
        }
    }
}

fn connector(
    map: &Map<'_>,
    folder: &Path,
    environment: Environment<'_>,
    mistakes: &mut Diagnostics,
) -> Option<Connector> {
    let mut text = |key: &str| expanded(map.get(key)?, environment, mistakes);
    match map.text("type")? {
        "scripted" => {
            let path = folder.join(text("script")?);
            script(&path, map.place_of("script"), mistakes).map(Connector::Scripted)
        }
        "recorded" => {
            let path = folder.join(text("file")?);
            let read = read(&path, map.place_of("file"), mistakes)?;
            if let Err(error) = Played::parse(&read.name, &read.text) {
                mistakes.extend(error.mistakes.into_iter().map(Diagnostic::new));
                return None;
            }
            Some(Connector::Recorded {
                file: read.name.clone(),
                text: read.text.as_str().into(),
                in_recorded_time: map.bool("in_recorded_time").unwrap_or(false),
            })
        }
        kind => {
            let provider = if kind == "openai" { Provider::OpenAi } else { Provider::Anthropic };
            let usual = hotseat_model::Connector::new(provider, text("model")?);
            let connector = hotseat_model::Connector {
                base_url: text("base_url"),
                key: text("api_key").map(Secret::new),
                headers: headers(map, environment, mistakes),
                limits: limits(map),
                stream: map.bool("stream").unwrap_or(usual.stream),
                temperature: map.number("temperature").and_then(serde_json::Number::as_f64),
                max_tokens: number(map, "max_tokens"),
                extra: match map.json("extra") {
                    Some(serde_json::Value::Object(members)) => members,
                    _ => usual.extra.clone(),
                },
                ..usual
            };
            if mistakes.is_empty()
                && let Err(error) = connector.clone().open()
            {
                let message = format!("this connector cannot be used: {}", error.message);
                mistakes.push(Diagnostic::new(message).at(map.place()));
            }
            Some(Connector::Provider(Box::new(connector)))
        }
    }
}

fn headers(map: &Map<'_>, environment: Environment<'_>, mistakes: &mut Diagnostics) -> Vec<(String, Secret)> {
    let entries = map.get("headers").and_then(View::entries).into_iter().flatten();
    let read = |(name, _, view): (&str, Place, View<'_>)| {
        expanded(view, environment, mistakes).map(|value| (name.to_owned(), Secret::new(value)))
    };
    entries.filter_map(read).collect()
}

fn limits(map: &Map<'_>) -> TimeLimits {
    let time = |key: &str, usual: Duration| millis(map, key).map_or(usual, Duration::from_millis);
    let usual = TimeLimits::default();
    TimeLimits {
        connect: time("connect_timeout_ms", usual.connect),
        first_byte: time("first_byte_timeout_ms", usual.first_byte),
        idle: time("idle_timeout_ms", usual.idle),
        total: time("timeout_ms", usual.total),
    }
}

/// The script in a file. `named` is where the file is named.
pub(super) fn script(path: &Path, named: Option<Place>, mistakes: &mut Diagnostics) -> Option<Arc<Script>> {
    match Script::read(&read(path, named, mistakes)?) {
        Ok(script) => Some(Arc::new(script)),
        Err(wrong) => {
            mistakes.extend(wrong);
            None
        }
    }
}

fn read(path: &Path, named: Option<Place>, mistakes: &mut Diagnostics) -> Option<Arc<Source>> {
    let shown = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Some(Source::new(shown, text, 1)),
        Err(error) => {
            let mistake = Diagnostic::new(format!("{shown} cannot be read: {error}"));
            mistakes.push(Diagnostic { place: named, ..mistake });
            None
        }
    }
}

/// A text with what its variables stand for: `${ENV.NAME}`; `$${` is `${`.
fn expanded(view: View<'_>, environment: Environment<'_>, mistakes: &mut Diagnostics) -> Option<String> {
    let text = view.text()?;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let offset = text.len() - rest.len() + at;
        if let Some(before) = rest[..at].strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let end = inside.find('}');
        let name = inside[..end.unwrap_or(inside.len())].strip_prefix("ENV.").filter(|name| !name.is_empty());
        let part = offset..offset + 2 + end.map_or(inside.len(), |end| end + 1);
        let mut wrong = |message: String| {
            mistakes.push(Diagnostic::new(message).at(view.place().within(text, part.clone())));
        };
        match (name, end) {
            (Some(name), Some(_)) => match environment(name) {
                Some(value) => out.push_str(&value),
                None => wrong(format!("environment variable `{name}` is not set")),
            },
            _ => wrong("here stands `${ENV.NAME}`, or `$${` for a text with these characters".to_owned()),
        }
        rest = end.map_or("", |end| &inside[end + 1..]);
    }
    out.push_str(rest);
    Some(out)
}
