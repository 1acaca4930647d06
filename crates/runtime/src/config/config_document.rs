//! Checks a config text against the table of keys and reports each mistake with its line and a
//! remedy. A document that passes has the right keys, with values of the right kind and range.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::de::{DeArray, DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::config_file::{ByteSize, ConfigDuration, DeserializedConfigFile};
use super::config_keys::{
    self, AllowedConfigWord, ConfigFileKind, ConfigKeySpec, ConfigValueKind,
    PersonalConfigKeyPermission,
};
use super::{ConfigError, NamedConfigText, ProfileRequest, TaskDriverKind, profile};

/// The most mistakes of one file that are reported at once.
const MAX_MISTAKES: usize = 10;
/// The most characters of a file that a message repeats.
const MAX_EXCERPT_CHARS: usize = 40;

/// Line and column, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// The line.
    pub line: usize,
    /// The character in it.
    pub column: usize,
}

impl TextPosition {
    fn position_at_offset(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        // A byte order mark is no character of its line.
        let line = before.get(start..).unwrap_or_default();
        let line = line.trim_start_matches('\u{feff}');
        Self {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

/// One thing that is wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigMistake {
    /// The position; `None` if the mistake concerns the whole file.
    pub at: Option<TextPosition>,
    /// The key that it concerns, or an empty text.
    pub key: String,
    /// What is wrong, and what to do.
    pub what: String,
}

/// Displays one mistake per line, as `FILE:LINE:COLUMN: KEY WHAT`.
pub(super) struct ConfigMistakesDisplay<'a>(pub(super) &'a Path, pub(super) &'a [ConfigMistake]);

impl fmt::Display for ConfigMistakesDisplay<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name, mistakes) = self;
        for (nth, mistake) in mistakes.iter().take(MAX_MISTAKES).enumerate() {
            if nth > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{}:", name.display())?;
            if let Some(at) = mistake.at {
                write!(formatter, "{}:{}:", at.line, at.column)?;
            }
            for part in [&mistake.key, &mistake.what] {
                if !part.is_empty() {
                    write!(formatter, " {part}")?;
                }
            }
        }
        match mistakes.len().saturating_sub(MAX_MISTAKES) {
            0 => Ok(()),
            more => write!(formatter, "\n{}: and {more} more", name.display()),
        }
    }
}

/// A config that holds only keys of the table, with the position of each.
#[derive(Debug, Clone)]
pub(super) struct ParsedConfigDocument {
    /// The file.
    pub(super) name: PathBuf,
    table: Table,
    positions: BTreeMap<String, TextPosition>,
    /// The profile under which positions are looked up first.
    profile: Option<String>,
}

impl ParsedConfigDocument {
    /// The document of a repo without a config.
    pub(super) fn empty_config_document() -> Self {
        Self {
            name: PathBuf::from("built-in defaults"),
            table: Table::new(),
            positions: BTreeMap::new(),
            profile: None,
        }
    }

    /// Parses and checks a text.
    pub(super) fn parse_config_document(
        source: &NamedConfigText,
        keys: ConfigFileKind,
    ) -> Result<Self, ConfigError> {
        let refused = |mistakes| ConfigError::Mistakes {
            name: source.name.clone(),
            mistakes,
        };
        // First the syntax: a text that does not parse has no keys to check.
        let (document, errors) = DeTable::parse_recoverable(&source.text);
        if !errors.is_empty() {
            let mistakes = errors
                .iter()
                .map(|error| config_syntax_mistake(&source.text, error));
            return Err(refused(mistakes.collect()));
        }
        // Then keys and values. All mistakes are collected, so that one attempt shows every one of
        // them.
        let mut check = ConfigKeyChecker {
            text: &source.text,
            keys,
            positions: BTreeMap::new(),
            mistakes: Vec::new(),
        };
        check.validate_config_table_keys(&TablePath::default(), document.get_ref());
        let mut mistakes = check.mistakes;
        if !mistakes.is_empty() {
            // A person reads by lines, whatever the order in which tables are walked.
            mistakes.sort_by_key(|mistake| mistake.at);
            return Err(refused(mistakes));
        }
        let positions = check.positions;
        // Positions are known by now; from here on plain values are enough.
        let table = source.text.parse().map_err(|error: toml::de::Error| {
            refused(vec![config_syntax_mistake(&source.text, &error)])
        })?;
        Ok(Self {
            name: source.name.clone(),
            table,
            positions,
            profile: None,
        })
    }

    /// Applies a profile to values and positions.
    pub(super) fn with_config_profile(mut self, profile: ProfileRequest<'_>) -> Self {
        self.profile = profile.requested_profile_name().map(str::to_owned);
        self.table = profile.apply_config_profile(self.table);
        self
    }

    /// Returns whether this document itself sets a key of a table, its profile included.
    pub(super) fn has_config_key(&self, table: &str, key: &str) -> bool {
        let table = self.table.get(table).and_then(Value::as_table);
        table.is_some_and(|table| table.contains_key(key))
    }

    /// Names of its profiles.
    pub(super) fn config_profile_names(&self) -> Vec<String> {
        let profiles = self.table.get("profile").and_then(Value::as_table);
        profiles
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Returns the config without its profiles, then each profile by itself.
    pub(super) fn split_config_and_profiles(
        &self,
    ) -> Result<Vec<DeserializedConfigFile>, ConfigError> {
        let mut plain = self.table.clone();
        let profiles = plain.remove("profile");
        let profiles = profiles.as_ref().and_then(Value::as_table);
        let tables = profiles
            .into_iter()
            .flatten()
            .filter_map(|(_, table)| table.as_table());
        // A part by itself may lack values that must be set, so each is laid over the defaults.
        let over_defaults = |table: &Table| {
            let mut base = config_keys::default_config_values(TaskDriverKind::Hook);
            profile::overlay_table(&mut base, table);
            self.deserialize_config_table(base)
        };
        std::iter::once(&plain)
            .chain(tables)
            .map(over_defaults)
            .collect()
    }

    /// Returns `base` with everything that this document sets laid over it.
    pub(super) fn merge_over_base_config(&self, mut base: Table) -> Table {
        profile::overlay_table(&mut base, &self.table);
        base
    }

    /// Deserializes a table that was made from this document.
    pub(super) fn deserialize_config_table<T: DeserializeOwned>(
        &self,
        table: Table,
    ) -> Result<T, ConfigError> {
        table
            .try_into()
            .map_err(|error: toml::de::Error| ConfigError::Mistakes {
                name: self.name.clone(),
                mistakes: vec![ConfigMistake {
                    at: None,
                    key: String::new(),
                    what: error.to_string().trim_end().to_owned(),
                }],
            })
    }

    /// The position of a key, or of its table if the key itself is not there.
    fn config_key_position(&self, key: &str) -> Option<TextPosition> {
        let within = self
            .profile
            .as_ref()
            .map(|profile| format!("profile.{profile}."));
        // The key before its table, and the profile before the rest of the file.
        let within = [within.unwrap_or_default(), String::new()];
        let table = key.rsplit_once([':', '.']).map_or("", |(table, _)| table);
        let names = [key, table].into_iter().filter(|name| !name.is_empty());
        names
            .flat_map(|name| within.iter().map(move |within| format!("{within}{name}")))
            .find_map(|name| self.positions.get(&name).copied())
    }

    /// Reports a mistake in the value of a key.
    pub(super) fn config_value_mistake(&self, key: &str, what: impl Into<String>) -> ConfigError {
        ConfigError::Mistakes {
            name: self.name.clone(),
            mistakes: vec![ConfigMistake {
                at: self.config_key_position(key),
                key: key.to_owned(),
                what: what.into(),
            }],
        }
    }

    /// Finds the positions of mistakes in a text that was made from this one with other names.
    pub(super) fn relocate_config_mistakes(
        &self,
        error: ConfigError,
        from: &str,
        to: &str,
    ) -> ConfigError {
        match error {
            ConfigError::Mistakes { name, mut mistakes } => {
                for mistake in &mut mistakes {
                    if let Some(rest) = mistake.key.strip_prefix(from) {
                        mistake.key = format!("{to}{rest}");
                    }
                    mistake.at = self.config_key_position(&mistake.key);
                }
                ConfigError::Mistakes { name, mistakes }
            }
            other => other,
        }
    }
}

/// Describes a syntax error.
fn config_syntax_mistake(text: &str, error: &toml::de::Error) -> ConfigMistake {
    let start = error.span().map(|span| span.start);
    let bare = start.and_then(|start| find_value_lacking_quotes(text, start));
    let what = match bare {
        // What the parser took the word for would mislead.
        Some((key, word)) => format!("text needs quotes: {key} = \"{word}\""),
        None => format!("this is no TOML: {}", error.message()),
    };
    ConfigMistake {
        at: start.map(|start| TextPosition::position_at_offset(text, start)),
        key: String::new(),
        what,
    }
}

/// Returns key and word of the line at this place, if the value is a word without quotes.
fn find_value_lacking_quotes(text: &str, at: usize) -> Option<(&str, &str)> {
    let (before, after) = text.split_at_checked(at)?;
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let end = after.find('\n').map_or(text.len(), |end| at + end);
    let (key, word) = text.get(line..end)?.split_once('=')?;
    let (key, word) = (key.trim(), word.trim());
    // TOML takes `true`, `false`, `inf` and `nan` without quotes.
    let fits = word.starts_with(char::is_alphabetic)
        && !word.contains(['"', '\'', '#'])
        && !["true", "false", "inf", "nan"].contains(&word);
    fits.then_some((key, word))
}

/// A table's place in the file, for messages.
#[derive(Debug, Clone, Default)]
struct TablePath {
    /// The table as the rows name it: `caps`, `verifier`.
    table: String,
    /// The prefix before its keys in messages: `caps.`, `verifier 'tests': `.
    label: String,
    /// The prefix before `label` inside of a profile: `profile.ci.`.
    profile: String,
}

impl TablePath {
    fn key_with_table_path(&self, key: &str) -> String {
        format!("{}{}{key}", self.profile, self.label)
    }

    /// The key with the table's name alone: the line shows which entry of a list is meant.
    fn key_with_profile_and_table(&self, key: &str) -> String {
        match self.table.as_str() {
            "" => format!("{}{key}", self.profile),
            table => format!("{}{table}.{key}", self.profile),
        }
    }

    /// The header of a table that is a row at the top of the file.
    fn format_config_table_header(&self, spec: &ConfigKeySpec) -> String {
        format_toml_table_header(
            &format!("{}{}", self.profile, spec.key_name_without_table()),
            spec,
        )
    }
}

fn format_toml_table_header(name: &str, spec: &ConfigKeySpec) -> String {
    match spec.value {
        ConfigValueKind::Tables => format!("[[{name}]]"),
        _ => format!("[{name}]"),
    }
}

struct ConfigKeyChecker<'a> {
    text: &'a str,
    keys: ConfigFileKind,
    positions: BTreeMap<String, TextPosition>,
    mistakes: Vec<ConfigMistake>,
}

impl ConfigKeyChecker<'_> {
    fn validate_config_table_keys(&mut self, path: &TablePath, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let shown = path.key_with_table_path(name);
            let at = TextPosition::position_at_offset(self.text, key.span().start);
            // Recorded before any check, so that every mistake about this key has a place.
            self.positions.entry(shown.clone()).or_insert(at);
            match self.keys.find_key_spec(&path.table, name) {
                None => {
                    let what = self.describe_unknown_key(path, name, value.get_ref());
                    self.add_config_mistake(at, "", what);
                }
                // The row exists to tell a key of a later build from a misspelt one.
                Some(spec) if spec.since.is_none() => {
                    self.add_config_mistake(
                        at,
                        "",
                        config_key_not_yet_supported_message(
                            &path.key_with_profile_and_table(name),
                        ),
                    );
                }
                Some(spec) => {
                    if self.keys == ConfigFileKind::OwnConfig
                        && spec.own_file == PersonalConfigKeyPermission::Refused
                    {
                        let what = "belongs into the repo's checkrein.toml; your own file can only tighten";
                        self.add_config_mistake(at, &shown, what);
                        continue;
                    }
                    self.check_config_value(path, spec, &shown, value);
                }
            }
        }
    }

    fn add_config_mistake(&mut self, at: TextPosition, key: &str, what: impl Into<String>) {
        self.mistakes.push(ConfigMistake {
            at: Some(at),
            key: key.to_owned(),
            what: what.into(),
        });
    }

    fn check_config_value(
        &mut self,
        path: &TablePath,
        spec: &'static ConfigKeySpec,
        shown: &str,
        value: &Spanned<DeValue<'_>>,
    ) {
        let at = TextPosition::position_at_offset(self.text, value.span().start);
        match (spec.value, value.get_ref()) {
            (ConfigValueKind::Table, DeValue::Table(table)) => {
                let inner = TablePath {
                    table: spec.path.to_owned(),
                    label: format!("{}.", spec.path),
                    profile: path.profile.clone(),
                };
                self.validate_config_table_keys(&inner, table);
            }
            // One bracket too many or too few is a common slip, so the message shows the right
            // header.
            (ConfigValueKind::Table, DeValue::Array(_)) => {
                let header = path.format_config_table_header(spec);
                self.add_config_mistake(at, "", format!("[{header}] is one table: write {header}"));
            }
            (ConfigValueKind::Tables, DeValue::Array(items)) => {
                self.validate_config_array_of_tables(path, spec, items)
            }
            (ConfigValueKind::Tables, DeValue::Table(_)) => {
                let name = format!("{}{}", path.profile, spec.key_name_without_table());
                let what = format!(
                    "[{name}]: a {} is written with two brackets: [[{name}]]",
                    spec.key_name_without_table()
                );
                self.add_config_mistake(at, "", what);
            }
            (ConfigValueKind::Profiles, DeValue::Table(profiles)) => {
                self.check_config_profiles(path, profiles)
            }
            // All other kinds are plain values. A table in the place of one may be meant for a
            // later build.
            (kind, found) => {
                let later = matches!(found, DeValue::Table(_))
                    && spec.becomes_table_in_later_build(self.keys);
                if later {
                    self.add_config_mistake(
                        at,
                        "",
                        config_key_not_yet_supported_message(&format!("[{shown}]")),
                    );
                } else if let Err(what) = check_config_value_kind(kind, found) {
                    self.add_config_mistake(at, shown, what);
                }
            }
        }
    }

    fn validate_config_array_of_tables(
        &mut self,
        path: &TablePath,
        spec: &'static ConfigKeySpec,
        items: &DeArray<'_>,
    ) {
        let mut names = BTreeSet::new();
        for item in items {
            let at = TextPosition::position_at_offset(self.text, item.span().start);
            let DeValue::Table(table) = item.get_ref() else {
                let what = format!(
                    "must be a list of tables: write {}",
                    path.format_config_table_header(spec)
                );
                self.add_config_mistake(
                    at,
                    &path.key_with_table_path(spec.key_name_without_table()),
                    what,
                );
                continue;
            };
            let name = match table.get("name").map(Spanned::get_ref) {
                Some(DeValue::String(name)) => name.as_ref(),
                _ => "",
            };
            // A name must mean one table: `accept` and profiles refer to it.
            if !name.is_empty() && !names.insert(name) {
                let key = format!("{}{}.name", path.profile, spec.key_name_without_table());
                let what = format!(
                    "'{}' is used twice; give one of them another name",
                    shorten_for_config_message(name)
                );
                self.add_config_mistake(at, &key, what);
            }
            let label = match name {
                "" => format!("{}.", spec.key_name_without_table()),
                name => format!(
                    "{} '{}': ",
                    spec.key_name_without_table(),
                    shorten_for_config_message(name)
                ),
            };
            let inner = TablePath {
                table: spec.path.to_owned(),
                label,
                profile: path.profile.clone(),
            };
            // The table has a position of its own, for mistakes about keys that it lacks.
            let whole = inner.key_with_table_path("");
            let whole = whole.trim_end_matches([' ', ':', '.']).to_owned();
            self.positions.entry(whole).or_insert(at);
            let before = self.mistakes.len();
            self.validate_config_table_keys(&inner, table);
            let required = self
                .keys
                .config_table_keys(&inner.table)
                .filter(|row| row.required);
            let missing = required.filter(|row| table.get(row.key_name_without_table()).is_none());
            // A misspelt key is reported already.
            let clean = self.mistakes.len() == before;
            for row in missing.filter(|_| clean) {
                let example = row.example.unwrap_or_default();
                let what = format!(
                    "is missing; write {} = {example}",
                    row.key_name_without_table()
                );
                self.mistakes.push(ConfigMistake {
                    at: Some(at),
                    key: inner.key_with_table_path(row.key_name_without_table()),
                    what,
                });
            }
        }
    }

    fn check_config_profiles(&mut self, path: &TablePath, profiles: &DeTable<'_>) {
        for (name, profile) in profiles {
            let at = TextPosition::position_at_offset(self.text, name.span().start);
            let inner = TablePath {
                profile: format!("profile.{}.", name.get_ref()),
                ..TablePath::default()
            };
            match profile.get_ref() {
                _ if !path.profile.is_empty() => {
                    let what = "a profile cannot hold another profile; write it by itself";
                    self.add_config_mistake(at, "", what);
                }
                DeValue::Table(table) => self.validate_config_table_keys(&inner, table),
                _ => {
                    let what = format!("must be a table: write [profile.{}]", name.get_ref());
                    self.add_config_mistake(at, &format!("profile.{}", name.get_ref()), what);
                }
            }
        }
    }

    /// Describes a key that has no row in its table: by the near match, by the tables that have it,
    /// or by everything that could stand here.
    fn describe_unknown_key(&self, path: &TablePath, key: &str, value: &DeValue<'_>) -> String {
        let name = shorten_for_config_message(key);
        let shown = path.key_with_profile_and_table(&name);
        // A table is compared with tables only: its keys would not fit anything else.
        let opens = match value {
            DeValue::Table(_) => true,
            DeValue::Array(items) => items.iter().any(|item| item.get_ref().is_table()),
            _ => false,
        };
        let table = path.table.is_empty() && opens;
        let what = match (table, value) {
            (true, DeValue::Array(_)) => format!("unknown table [[{shown}]]"),
            (true, _) => format!("unknown table [{shown}]"),
            (false, _) => format!("unknown key '{shown}'"),
        };
        let here: Vec<&ConfigKeySpec> = self.keys.config_table_keys(&path.table).collect();
        let fitting = here
            .iter()
            .copied()
            .filter(|spec| !table || spec.config_key_holds_table());
        // A misspelt key of this table is the likeliest.
        if let Some(near) = nearest_config_key(fitting, key) {
            return match near.config_key_holds_table() {
                true => format!(
                    "{what}; did you mean {}?",
                    path.format_config_table_header(near)
                ),
                false => format!(
                    "{what}; did you mean '{}'?",
                    path.key_with_profile_and_table(near.key_name_without_table())
                ),
            };
        }
        // A key that is right, but stands in the wrong table.
        let others = self
            .keys
            .specs_of_keys_holding_tables()
            .filter(|spec| spec.path != path.table);
        let mut elsewhere = Vec::new();
        for other in others.filter(|_| !table) {
            if self
                .keys
                .config_table_keys(other.path)
                .any(|spec| spec.key_name_without_table() == key)
            {
                elsewhere.push(path.format_config_table_header(other));
            }
        }
        // Below a table's header TOML takes every key for one of that table.
        if !path.table.is_empty() && self.keys.find_key_spec("", key).is_some() {
            return format!(
                "{what}; '{name}' belongs to the top of the file, above the first [table]"
            );
        }
        if !elsewhere.is_empty() {
            return format!("{what}; '{name}' is a key of {}", elsewhere.join(" and "));
        }
        let known: Vec<String> = here
            .iter()
            .filter(|spec| spec.since.is_some() && (!table || spec.config_key_holds_table()))
            .map(|spec| match spec.config_key_holds_table() {
                true => format_toml_table_header(spec.key_name_without_table(), spec),
                false => spec.key_name_without_table().to_owned(),
            })
            .collect();
        format!("{what}; known here: {}", known.join(", "))
    }
}

impl ConfigKeySpec {
    /// Whether later builds accept a table in its place.
    fn becomes_table_in_later_build(&self, keys: ConfigFileKind) -> bool {
        keys.config_table_keys(self.path)
            .any(|spec| spec.since.is_none())
            && !self.config_key_holds_table()
    }
}

fn config_key_not_yet_supported_message(shown: &str) -> String {
    format!(
        "this build does not act on '{shown}' yet; take it out, so that nothing you rely on is silently missing"
    )
}

fn nearest_config_key<'a>(
    specs: impl Iterator<Item = &'a ConfigKeySpec>,
    key: &str,
) -> Option<&'a ConfigKeySpec> {
    let with_distance = specs.map(|spec| {
        (
            strsim::damerau_levenshtein(spec.key_name_without_table(), key),
            spec,
        )
    });
    // Of two keys that are equally near, the first by name, so that the message is always the same.
    let (distance, spec) =
        with_distance.min_by_key(|(distance, spec)| (*distance, spec.key_name_without_table()))?;
    is_close_spelling(distance, spec.key_name_without_table()).then_some(spec)
}

/// Up to three changes count as close, but no more than half of the word.
fn is_close_spelling(distance: usize, known: &str) -> bool {
    distance <= 3 && 2 * distance <= known.len()
}

/// Shortens a text of the file for a message, without control characters.
fn shorten_for_config_message(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_EXCERPT_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Checks that a value is of this kind; otherwise describes what is wrong with it.
fn check_config_value_kind(kind: ConfigValueKind, value: &DeValue<'_>) -> Result<(), String> {
    let wrong = || {
        Err(format!(
            "must be {kind}, not {}",
            describe_config_value(value)
        ))
    };
    let integer = match value {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    let float: Option<f64> = match value {
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => integer.map(|number| number as f64),
    };
    let right = match (kind, value) {
        (ConfigValueKind::Text, DeValue::String(_))
        | (ConfigValueKind::Flag, DeValue::Boolean(_)) => true,
        (ConfigValueKind::Count(0), DeValue::Integer(_)) => {
            integer.is_some_and(|number| number >= 0)
        }
        // A count that is too small is told its bound; everything else is told the kind.
        (ConfigValueKind::Count(least), DeValue::Integer(_)) => match integer {
            Some(number) if number < least => {
                return Err(format!(
                    "must be {least} or more, not {number}; leave it out for the default"
                ));
            }
            found => found.is_some(),
        },
        (ConfigValueKind::Order, _) => integer.is_some_and(|number| i32::try_from(number).is_ok()),
        (ConfigValueKind::Share, _) => float.is_some_and(|number| (0.0..=1.0).contains(&number)),
        (ConfigValueKind::ShareAboveZero, _) => {
            float.is_some_and(|number| number > 0.0 && number <= 1.0)
        }
        // Costs are kept in millionths of a dollar, so the least is one of these.
        (ConfigValueKind::Dollars, _) => {
            float.is_some_and(|number| (number * 1e6).round() >= 1.0 && number <= 1e9)
        }
        (ConfigValueKind::Span { least, most }, DeValue::String(text)) => {
            match ConfigDuration::parse_time_span(text) {
                Some(span) => return require_time_span_in_range(span, least, most),
                None => false,
            }
        }
        (ConfigValueKind::Size(least), DeValue::String(text)) => {
            match ByteSize::parse_byte_size(text) {
                Some(size)
                    if ByteSize::parse_byte_size(least)
                        .is_some_and(|least| size.bytes < least.bytes) =>
                {
                    return Err(format!("must be {least} or more"));
                }
                size => size.is_some(),
            }
        }
        (ConfigValueKind::OneOf(words), DeValue::String(text)) => {
            return check_allowed_config_word(kind, words, text);
        }
        (ConfigValueKind::AnyOf(words), DeValue::Array(items)) => {
            for item in items {
                match item.get_ref() {
                    DeValue::String(text) => {
                        check_allowed_config_word(ConfigValueKind::OneOf(words), words, text)?
                    }
                    other => {
                        return Err(format!(
                            "must be {kind}, not of {}",
                            describe_config_value(other)
                        ));
                    }
                }
            }
            true
        }
        (ConfigValueKind::Texts, DeValue::Array(items)) => items
            .iter()
            .all(|item| matches!(item.get_ref(), DeValue::String(_))),
        _ => false,
    };
    if right { Ok(()) } else { wrong() }
}

fn require_time_span_in_range(span: ConfigDuration, least: &str, most: &str) -> Result<(), String> {
    let bound = |text: &str| ConfigDuration::parse_time_span(text).map_or(0, |span| span.ms);
    if span.ms == 0 {
        return Err("must be more than no time; leave it out for the default".to_owned());
    }
    if span.ms < bound(least) {
        return Err(format!("must be {least} or more"));
    }
    if span.ms > bound(most) {
        return Err(format!("must be {most} or less"));
    }
    Ok(())
}

fn check_allowed_config_word(
    kind: ConfigValueKind,
    words: &[AllowedConfigWord],
    text: &str,
) -> Result<(), String> {
    match words.iter().find(|word| word.text == text) {
        Some(word) if word.acts => Ok(()),
        Some(_) => Err(format!(
            "= \"{text}\": this build does not act on that value yet; it must be {kind}"
        )),
        None => {
            let acts = words.iter().filter(|word| word.acts);
            let close = acts
                .map(|word| (strsim::damerau_levenshtein(word.text, text), word.text))
                .min()
                .filter(|(distance, word)| is_close_spelling(*distance, word));
            let close = close.map_or_else(String::new, |(_, word)| {
                format!("; did you mean \"{word}\"?")
            });
            Err(format!(
                "must be {kind}, not \"{}\"{close}",
                shorten_for_config_message(text)
            ))
        }
    }
}

/// Describes what is wrong with this word as the value of this key, if anything is.
pub(super) fn describe_bad_config_value(path: &str, text: &str) -> Option<String> {
    let spec = config_keys::KEYS.iter().find(|spec| spec.path == path)?;
    check_config_value_kind(spec.value, &DeValue::String(text.into())).err()
}

/// A value as a message repeats it.
fn describe_config_value(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{}\"", shorten_for_config_message(text)),
        DeValue::Integer(number) => shorten_for_config_message(&number.to_string()),
        DeValue::Float(number) => shorten_for_config_message(number.as_str()),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
