//! The files that are written from the table of keys: `schema/checkrein.schema.json` and
//! `src/config/defaults.toml`; and the samples beside the schema against what the loader says.
//!
//! After a change of the table: `CHECKREIN_BLESS=1 cargo test -p checkrein-runtime --test schema`.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "what a test needs to be there may fail as loudly as the test"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use checkrein_runtime::config::{
    self, AllowedConfigWord, CompiledPolicy, ConfigError, ConfigKeySpec, ConfigValueKind, KEYS,
    NamedConfigText, TaskDriverKind,
};
use serde_json::{Map, Value, json};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.unwrap().to_owned()
}

fn folder() -> PathBuf {
    root().join("schema")
}

/// The rows of a table that this build acts on.
fn rows(table: &str) -> impl Iterator<Item = &'static ConfigKeySpec> {
    let of = KEYS
        .iter()
        .filter(move |spec| spec.table_of_config_key() == table);
    of.filter(|spec| spec.since.is_some())
}

/// The keys of a table and of the tables in it.
fn keys_below(table: &str) -> impl Iterator<Item = &'static ConfigKeySpec> {
    let below = move |spec: &&ConfigKeySpec| {
        let inside = spec.path.strip_prefix(table);
        inside.is_some_and(|rest| rest.starts_with('.')) && !spec.config_key_holds_table()
    };
    KEYS.iter()
        .filter(below)
        .filter(|spec| spec.since.is_some())
}

fn schema() -> Value {
    let mut profile = object("");
    profile["properties"]
        .as_object_mut()
        .unwrap()
        .remove("profile");
    let mut schema = object("");
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("checkrein.toml");
    schema["$defs"] = json!({ "profile": profile });
    schema
}

fn object(table: &str) -> Value {
    let properties: Map<String, Value> = rows(table)
        .map(|spec| (spec.key_name_without_table().to_owned(), property(spec)))
        .collect();
    let required: Vec<&str> = rows(table)
        .filter(|spec| spec.required)
        .map(ConfigKeySpec::key_name_without_table)
        .collect();
    let mut object =
        json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn property(spec: &ConfigKeySpec) -> Value {
    let one_of = |words: &[AllowedConfigWord]| {
        let acts = words.iter().filter(|word| word.acts);
        let choices = acts.map(|word| json!({ "const": word.text, "description": word.meaning }));
        json!({ "oneOf": choices.collect::<Vec<_>>() })
    };
    let mut value = match spec.value {
        ConfigValueKind::Text => json!({ "type": "string" }),
        ConfigValueKind::Flag => json!({ "type": "boolean" }),
        ConfigValueKind::Count(least) => json!({ "type": "integer", "minimum": least }),
        ConfigValueKind::Order => json!({ "type": "integer" }),
        ConfigValueKind::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        ConfigValueKind::ShareAboveZero => {
            json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 })
        }
        ConfigValueKind::Dollars => json!({ "type": "number", "exclusiveMinimum": 0 }),
        ConfigValueKind::Span { .. } => {
            json!({ "type": "string", "pattern": "^([0-9]+(ms|s|m|min|h|d) ?)+$" })
        }
        ConfigValueKind::Size(_) => {
            json!({ "type": "string", "pattern": "^[0-9]+ ?(kB|KB|MB|GB)$" })
        }
        ConfigValueKind::OneOf(words) => one_of(words),
        ConfigValueKind::AnyOf(words) => json!({ "type": "array", "items": one_of(words) }),
        ConfigValueKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        ConfigValueKind::Table => object(spec.path),
        ConfigValueKind::Tables => json!({ "type": "array", "items": object(spec.path) }),
        ConfigValueKind::Profiles => {
            json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/profile" } })
        }
    };
    value["description"] = json!(spec.doc);
    if let Some(default) = spec.default {
        value["default"] = serde_json::to_value(toml_value(default)).unwrap();
    }
    value
}

fn toml_value(text: &str) -> toml::Value {
    let table: toml::Table = format!("value = {text}").parse().unwrap();
    table["value"].clone()
}

/// `defaults.toml`: what has a default is set, the rest is shown as a comment.
fn manual() -> String {
    let mut text = "\
# Checkrein's defaults, and the manual of checkrein.toml. Every key is optional.
# What stands here is what holds without a file; the rest is commented out.
"
    .to_owned();
    for spec in rows("").filter(|spec| !spec.config_key_holds_table()) {
        line(&mut text, spec, false);
    }
    for table in rows("").filter(|spec| spec.config_key_holds_table()) {
        text.push('\n');
        comment(&mut text, table.doc);
        match table.value {
            ConfigValueKind::Profiles => text.push_str(PROFILE),
            ConfigValueKind::Tables => writeln!(text, "# [[{}]]", table.path).unwrap(),
            _ => writeln!(text, "[{}]", table.path).unwrap(),
        }
        let inside_comment = matches!(table.value, ConfigValueKind::Tables);
        for spec in keys_below(table.path) {
            line(&mut text, spec, inside_comment);
        }
    }
    text
}

const PROFILE: &str = "\
# [profile.ci]
# verify_on = \"always\"
# [profile.ci.stance]
# stop = \"block\"
";

fn line(text: &mut String, spec: &ConfigKeySpec, commented: bool) {
    text.push('\n');
    let mut about = spec.doc.to_owned();
    if let ConfigValueKind::OneOf(words) | ConfigValueKind::AnyOf(words) = spec.value {
        let acts = words.iter().filter(|word| word.acts);
        let words: Vec<String> = acts
            .map(|word| format!("\"{}\": {}", word.text, word.meaning))
            .collect();
        write!(about, " {}.", words.join("; ")).unwrap();
    }
    comment(text, &about);
    // With the tables inside of the one whose header stands above.
    let key = spec.path.split_once('.').map_or(spec.path, |(_, key)| key);
    match (spec.default, spec.example) {
        (Some(value), _) if !commented => writeln!(text, "{key} = {value}"),
        (Some(value), _) | (None, Some(value)) => writeln!(text, "# {key} = {value}"),
        (None, None) => unreachable!("{} has no value to show", spec.path),
    }
    .unwrap();
}

/// Wrapped, and without Markdown.
fn comment(text: &mut String, words: &str) {
    let mut width = 0;
    for word in words.replace('`', "").split(' ') {
        if width == 0 || width + word.chars().count() > 96 {
            text.push_str(if width == 0 { "#" } else { "\n#" });
            width = 1;
        }
        write!(text, " {word}").unwrap();
        width += 1 + word.chars().count();
    }
    text.push('\n');
}

fn compile(name: &str, text: &str) -> Result<CompiledPolicy, ConfigError> {
    let source = NamedConfigText {
        name: PathBuf::from(name),
        text: text.to_owned(),
    };
    config::compile_repo_and_personal_config(Some(&source), None, TaskDriverKind::Hook)
}

/// A file against what is written from the table.
fn check_written(file: &Path, generated: &str) {
    if std::env::var_os("CHECKREIN_BLESS").is_some() {
        std::fs::write(file, generated).unwrap();
    }
    // A checkout may have turned the line breaks.
    let committed = std::fs::read_to_string(file).unwrap().replace("\r\n", "\n");
    assert_eq!(committed, generated, "CHECKREIN_BLESS=1 rewrites it");
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let generated = serde_json::to_string_pretty(&schema()).unwrap();
    check_written(
        &folder().join("checkrein.schema.json"),
        &format!("{generated}\n"),
    );
}

#[test]
fn the_shipped_defaults_are_up_to_date() {
    check_written(
        &root().join("crates/runtime/src/config/defaults.toml"),
        &manual(),
    );
}

/// A config that sets this key to this value, and what else its table needs.
fn setting(spec: &ConfigKeySpec, value: &str) -> String {
    let line = format!("{} = {value}\n", spec.key_name_without_table());
    match spec.table_of_config_key() {
        "" => line,
        "verifier" if spec.key_name_without_table() == "name" => {
            format!("[[verifier]]\n{line}run = \"x\"\n")
        }
        "verifier" => format!("[[verifier]]\nname = \"a\"\n{line}"),
        "middleware" if spec.key_name_without_table() == "name" => {
            format!("[[middleware]]\n{line}")
        }
        "middleware" => format!("[[middleware]]\nname = \"a\"\n{line}"),
        table => format!("[{table}]\n{line}"),
    }
}

/// What passes the table can be read as values: nothing is wrong with a key that has no place.
#[test]
fn every_value_that_the_table_takes_can_be_read() {
    let mut tried = 0;
    for spec in KEYS
        .iter()
        .filter(|spec| spec.since.is_some() && !spec.config_key_holds_table())
    {
        let mut values: Vec<String> = spec
            .default
            .or(spec.example)
            .map(str::to_owned)
            .into_iter()
            .collect();
        values.extend(spec.run_default.map(str::to_owned));
        match spec.value {
            ConfigValueKind::OneOf(words) => {
                values.extend(words.iter().map(|word| format!("\"{}\"", word.text)))
            }
            ConfigValueKind::AnyOf(words) => {
                values.extend(words.iter().map(|word| format!("[\"{}\"]", word.text)))
            }
            ConfigValueKind::Count(_) => values.push(i64::MAX.to_string()),
            ConfigValueKind::Share | ConfigValueKind::ShareAboveZero | ConfigValueKind::Dollars => {
                values.push("1".to_owned())
            }
            _ => {}
        }
        for value in values {
            tried += 1;
            if let Err(ConfigError::Mistakes { mistakes, .. }) =
                compile("checkrein.toml", &setting(spec, &value))
            {
                for mistake in mistakes {
                    assert!(mistake.at.is_some(), "{} = {value}: {mistake:?}", spec.path);
                }
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn a_key_of_a_later_build_is_said_to_be_one() {
    for spec in KEYS.iter().filter(|spec| spec.since.is_none()) {
        let said = compile("checkrein.toml", &setting(spec, "1"))
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("this build does not act on"),
            "{}: {said}",
            spec.path
        );
        assert!(said.contains("checkrein.toml:"), "{said}");
    }
}

#[test]
fn the_schema_names_no_key_that_is_not_acted_on() {
    for spec in KEYS {
        let table = match spec.table_of_config_key() {
            "" => "/properties".to_owned(),
            table => format!("/properties/{}", table.replace('.', "/properties/")),
        };
        let schema = schema();
        let within = |part: &str| {
            schema
                .pointer(&format!("{table}{part}/{}", spec.key_name_without_table()))
                .is_some()
        };
        let named = match spec.table_of_config_key() {
            "" => within(""),
            _ => within("/properties") || within("/items/properties"),
        };
        assert_eq!(named, spec.since.is_some(), "{}", spec.path);
    }
}

#[test]
fn the_table_names_each_key_once() {
    let mut paths: Vec<&str> = KEYS.iter().map(|spec| spec.path).collect();
    paths.sort_unstable();
    let all = paths.len();
    paths.dedup();
    assert_eq!(paths.len(), all);
}

/// Each sample's text by file name.
fn samples(kind: &str) -> Vec<(String, String)> {
    let folder = folder().join("samples").join(kind);
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() >= 3, "{kind}: only {} samples", found.len());
    found
}

#[test]
fn valid_samples_are_taken_without_a_word() {
    for (name, text) in samples("valid") {
        let compiled = compile(&name, &text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(compiled.warnings, Vec::<String>::new(), "{name}");
    }
}

/// The first line of an invalid sample is `# says: PART OF THE MESSAGE`.
#[test]
fn invalid_samples_are_refused() {
    for (name, text) in samples("invalid") {
        let expected = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# says: "));
        let expected = expected.unwrap_or_else(|| panic!("{name} does not begin with `# says: `"));
        let said = compile(&name, &text).unwrap_err().to_string();
        assert!(said.contains(expected), "{name} said {said:?}");
        assert!(said.contains(&name), "{said:?} does not name the file");
    }
}
