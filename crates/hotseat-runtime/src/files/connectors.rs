//! Language models configured in files.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, MapView, NodeView, SourceSpan, SourceText, nearest_or,
};
use hotseat_http::read_header_name;
use hotseat_model::script::{ModelScript, ScriptedModel};
use hotseat_model::{LiveModel, Model, ModelError, Provider, PureModel, Secret, TimeLimits};

use super::shape::CONNECTOR;
use super::{Environment, millis, number};

/// Configured language model.
#[derive(Clone)]
pub enum ModelConnector {
    /// Replies follow a script.
    Scripted(Arc<ModelScript>),
    /// Replies come from a provider over HTTP.
    Provider(Box<hotseat_model::ConnectorConfig>),
}

impl fmt::Debug for ModelConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelConnector::Scripted(script) => f.debug_tuple("Scripted").field(&script.name()).finish(),
            ModelConnector::Provider(connector) => f.debug_tuple("Provider").field(connector).finish(),
        }
    }
}

impl ModelConnector {
    /// Opens a new model for real time, without history.
    ///
    /// # Errors
    /// If the connector cannot be used.
    pub fn open(&self) -> Result<Arc<dyn Model>, ModelError> {
        Ok(match self {
            ModelConnector::Scripted(script) => Arc::new(LiveModel::new(ScriptedModel::new(script.clone()))),
            ModelConnector::Provider(connector) => hotseat_model::ConnectorConfig::clone(connector).open()?,
        })
    }

    /// Opens a new model without clock and network, or returns `None` if the connector needs them.
    pub fn open_pure(&self) -> Option<Box<dyn PureModel>> {
        match self {
            ModelConnector::Scripted(script) => Some(Box::new(ScriptedModel::new(script.clone()))),
            ModelConnector::Provider(_) => None,
        }
    }
}

/// Prices of a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenPrice {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Input tokens that the provider had cached.
    pub cached_input: f64,
}

impl TokenPrice {
    fn from_map(map: &MapView<'_>) -> Option<TokenPrice> {
        let number = |key: &str| map.number(key).and_then(serde_json::Number::as_f64);
        let input = number("input")?;
        Some(TokenPrice {
            input,
            output: number("output")?,
            cached_input: number("cached_input").unwrap_or(input),
        })
    }
}

/// Reports negative prices.
fn check_prices(view: &NodeView<'_>, mistakes: &mut Diagnostics) {
    let shape = CONNECTOR.shape_of(view.node);
    let map = shape.and_then(|shape| MapView::from_node(view.node, view.source, shape));
    let Some(price) = map.as_ref().and_then(|map| map.map("price")) else { return };
    for key in ["input", "output", "cached_input"] {
        if price.number(key).and_then(serde_json::Number::as_f64).is_some_and(|number| number < 0.0) {
            let mistake = Diagnostic::new(format!("`{key}` must be 0 or more"));
            mistakes.push(Diagnostic { place: price.place_of(key), ..mistake });
        }
    }
}

/// Undecoded connectors by name. Environment variables are looked up only when a connector is used.
#[derive(Debug, Clone, Default)]
pub struct ConnectorSet(BTreeMap<String, RawConnector>);

/// Undecoded connector.
#[derive(Debug, Clone)]
struct RawConnector {
    source: Arc<SourceText>,
    node: DocumentNode,
    /// Base folder of its paths.
    folder: PathBuf,
    /// Position of its name.
    name: SourceSpan,
}

impl ConnectorSet {
    /// Adds the connectors of a mapping that was checked against [`CONNECTOR`]. Relative paths are resolved
    /// against `folder`.
    pub fn add(&mut self, view: NodeView<'_>, folder: &Path, mistakes: &mut Diagnostics) {
        for (name, place, view) in view.entries().into_iter().flatten() {
            if let Some(first) = self.0.get(name) {
                let message = format!("duplicate connector name `{name}`");
                let mistake =
                    Diagnostic::new(message).at(place).with_related(first.name.clone(), "the first");
                mistakes.push(mistake);
                continue;
            }
            check_prices(&view, mistakes);
            let (source, node, folder) = (view.source.clone(), view.node.clone(), folder.to_path_buf());
            self.0.insert(name.to_owned(), RawConnector { source, node, folder, name: place });
        }
    }

    /// Adds connectors whose names are not in use yet.
    pub fn add_missing(&mut self, other: &ConnectorSet) {
        for (name, written) in &other.0 {
            self.0.entry(name.clone()).or_insert_with(|| written.clone());
        }
    }

    /// Returns the prices of all connectors that have one, by connector name and by model name (unless it
    /// contains a variable).
    pub fn prices(&self) -> impl Iterator<Item = (&str, Option<&str>, TokenPrice)> {
        self.0.iter().filter_map(|(name, written)| {
            let map = MapView::from_node(&written.node, &written.source, CONNECTOR.shape_of(&written.node)?)?;
            let has_model = matches!(map.text("type"), Some("openai" | "anthropic"));
            let model =
                if has_model { map.text("model").filter(|model| !model.contains("${")) } else { None };
            Some((name.as_str(), model, TokenPrice::from_map(&map.map("price")?)?))
        })
    }

    /// Returns the position of a connector.
    #[cfg(feature = "agent")]
    pub(super) fn place(&self, name: &str) -> Option<SourceSpan> {
        self.0.get(name).map(|written| written.node.place(&written.source))
    }

    /// Returns the settings of a connector that may change its replies: as written, as JSON, and the text of its file.
    pub fn written_settings(&self, name: &str) -> Option<String> {
        let connector = self.0.get(name)?;
        let mut written = connector.node.to_json();
        let file = self.file(name).and_then(|file| hotseat_document::read_text_file(&file).ok());
        if let Some(members) = written.as_object_mut() {
            members.retain(|key, _| {
                !["api_key", "headers", "price"].contains(&&**key) && !key.ends_with("timeout_ms")
            });
        }
        Some(format!("{written}{}", file.unwrap_or_default()))
    }

    /// Returns the file that a connector reads, if there is one.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        let connector = self.0.get(name)?;
        let written = connector.node.to_json();
        Some(connector.folder.join(written.get("script")?.as_str()?))
    }

    /// Returns the names of the connectors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns true if a connector with this name exists.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Decodes a connector with its variables and files. `used` is the position that refers to it.
    ///
    /// # Errors
    /// If it does not exist or is invalid.
    pub fn get(
        &self,
        name: &str,
        used: Option<SourceSpan>,
        environment: Environment<'_>,
    ) -> Result<ModelConnector, Diagnostics> {
        let Some(written) = self.0.get(name) else {
            let mistake =
                Diagnostic { place: used, ..Diagnostic::new(format!("unknown connector `{name}`")) };
            let help = nearest_or(name, self.names(), || match self.0.is_empty() {
                true => "define connectors under `connectors`".to_owned(),
                false => format!("there are `{}`", self.names().collect::<Vec<_>>().join("`, `")),
            });
            return Err(mistake.help(help).into());
        };
        let mut mistakes = Diagnostics::new();
        let shape = CONNECTOR.shape_of(&written.node);
        let map = shape.and_then(|shape| MapView::from_node(&written.node, &written.source, shape));
        let read = map.and_then(|map| decode_connector(&map, &written.folder, environment, &mut mistakes));
        match read {
            Some(connector) if mistakes.is_empty() => Ok(connector),
            _ => Err(mistakes),
        }
    }
}

fn decode_connector(
    map: &MapView<'_>,
    folder: &Path,
    environment: Environment<'_>,
    mistakes: &mut Diagnostics,
) -> Option<ModelConnector> {
    let mut text = |key: &str| expand_variables(map.get(key)?, environment, mistakes);
    match map.text("type")? {
        "scripted" => {
            let path = folder.join(text("script")?);
            read_script(&path, map.place_of("script"), mistakes).map(ModelConnector::Scripted)
        }
        kind => {
            let provider = if kind == "openai" { Provider::OpenAi } else { Provider::Anthropic };
            let usual = hotseat_model::ConnectorConfig::new(provider, text("model")?);
            let connector = hotseat_model::ConnectorConfig {
                base_url: text("base_url"),
                key: text("api_key").map(Secret::new),
                headers: headers(map, environment, mistakes),
                limits: decode_limits(map),
                stream: map.bool("stream").unwrap_or(usual.stream),
                temperature: map.number("temperature").and_then(serde_json::Number::as_f64),
                max_tokens: number(map, "max_tokens"),
                extra: match map.json("extra") {
                    Some(serde_json::Value::Object(members)) => members,
                    _ => usual.extra.clone(),
                },
                ..usual
            };
            report_reserved_members(map, kind, mistakes);
            if mistakes.is_empty()
                && let Err(error) = connector.clone().open()
            {
                mistakes.report(map.place(), format!("invalid connector: {}", error.message));
            }
            Some(ModelConnector::Provider(Box::new(connector)))
        }
    }
}

/// Reports members of `extra` that would replace what the request is about.
fn report_reserved_members(map: &MapView<'_>, kind: &str, mistakes: &mut Diagnostics) {
    for (name, place, value) in map.get("extra").and_then(NodeView::entries).into_iter().flatten() {
        let help = match name {
            "model" | "stream" => format!("set `{name}` of the connector"),
            // Some servers reject this member.
            "stream_options" if value.json().is_null() => continue,
            "messages" | "tools" | "stream_options" => "remove it".to_owned(),
            "system" if kind == "anthropic" => "remove it".to_owned(),
            _ => continue,
        };
        let message = format!("`extra.{name}` would overwrite a member that Hotseat sets");
        mistakes.push(Diagnostic::new(message).at(Some(place)).help(help));
    }
}

fn headers(
    map: &MapView<'_>,
    environment: Environment<'_>,
    mistakes: &mut Diagnostics,
) -> Vec<(String, Secret)> {
    let entries = map.get("headers").and_then(NodeView::entries).into_iter().flatten();
    let read = |(name, place, view): (&str, SourceSpan, NodeView<'_>)| {
        if let Err(error) = read_header_name(name) {
            mistakes.report(place, error.to_string());
        }
        expand_variables(view, environment, mistakes).map(|value| (name.to_owned(), Secret::new(value)))
    };
    entries.filter_map(read).collect()
}

fn decode_limits(map: &MapView<'_>) -> TimeLimits {
    let time = |key: &str, usual: Duration| millis(map, key).map_or(usual, Duration::from_millis);
    let defaults = TimeLimits::default();
    TimeLimits {
        connect: time("connect_timeout_ms", defaults.connect),
        first_byte: time("first_byte_timeout_ms", defaults.first_byte),
        idle: time("idle_timeout_ms", defaults.idle),
        total: time("timeout_ms", defaults.total),
    }
}

/// Reads a script. `named` is the position that refers to it.
pub(super) fn read_script(
    path: &Path,
    named: Option<SourceSpan>,
    mistakes: &mut Diagnostics,
) -> Option<Arc<ModelScript>> {
    match ModelScript::from_source(&read_source(path, named, mistakes)?) {
        Ok(script) => Some(Arc::new(script)),
        Err(wrong) => {
            mistakes.extend(wrong);
            None
        }
    }
}

fn read_source(
    path: &Path,
    named: Option<SourceSpan>,
    mistakes: &mut Diagnostics,
) -> Option<Arc<SourceText>> {
    let shown = path.display().to_string();
    match hotseat_document::read_text_file(path) {
        Ok(text) => Some(SourceText::new(shown, text, 1)),
        Err(error) => {
            let mistake = Diagnostic::new(format!("cannot read {shown}: {error}"));
            mistakes.push(Diagnostic { place: named, ..mistake });
            None
        }
    }
}

/// Replaces environment variables (`${ENV.NAME}`) in a text; `$${` is a literal `${`.
fn expand_variables(
    view: NodeView<'_>,
    environment: Environment<'_>,
    mistakes: &mut Diagnostics,
) -> Option<String> {
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
            mistakes.report(view.place().within(text, part.clone()), message);
        };
        match (name, end) {
            (Some(name), Some(_)) => match environment(name) {
                Some(value) => out.push_str(&value),
                None => wrong(format!("environment variable `{name}` is not set")),
            },
            _ => wrong("expected `${ENV.NAME}`, or `$${` for a literal `${`".to_owned()),
        }
        rest = end.map_or("", |end| &inside[end + 1..]);
    }
    out.push_str(rest);
    Some(out)
}
