//! `schema/checkrein.schema.json` against the types it is generated from, and the samples
//! beside it against what the config reader says of them.
//!
//! After a change of the config: `CHECKREIN_BLESS=1 cargo test -p checkrein-runtime --test schema`.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "what a test needs to be there may fail as loudly as the test"
)]

use std::path::{Path, PathBuf};

use checkrein_runtime::config::{self, Compiled, ConfigError, ConfigFile, Driver, Source};
use serde_json::Value;

fn folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.unwrap().join("schema")
}

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(ConfigFile)).unwrap()
}

fn compile(name: &str, text: &str) -> Result<Compiled, ConfigError> {
    let source = Source {
        name: PathBuf::from(name),
        text: text.to_owned(),
    };
    config::compile(Some(&source), None, Driver::Hook)
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let file = folder().join("checkrein.schema.json");
    let mut generated = serde_json::to_string_pretty(&schema()).unwrap();
    generated.push('\n');
    if std::env::var_os("CHECKREIN_BLESS").is_some() {
        std::fs::write(&file, &generated).unwrap();
    }
    // A checkout may have turned the line breaks.
    let committed = std::fs::read_to_string(&file)
        .unwrap()
        .replace("\r\n", "\n");
    assert_eq!(committed, generated, "CHECKREIN_BLESS=1 rewrites it");
}

/// `table.key` → the schema of its value.
fn keys(of: &Value, defs: &Value, prefix: &str, found: &mut Vec<(String, Value)>) {
    for (key, value) in of["properties"].as_object().into_iter().flatten() {
        let path = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        let inner = value["items"]["$ref"].as_str().or(value["$ref"].as_str());
        match inner.and_then(|name| defs.get(name.rsplit('/').next()?)) {
            Some(table) if table["properties"].is_object() => keys(table, defs, &path, found),
            _ => found.push((path, value.clone())),
        }
    }
}

#[test]
fn the_schema_names_no_key_that_is_not_acted_on() {
    let schema = schema();
    let mut found = Vec::new();
    keys(&schema, &schema["$defs"], "", &mut found);
    assert!(found.len() > 25, "{found:?}");
    for (path, _) in found {
        // The key alone is judged before its value; a value of the wrong type may be refused.
        let text = match path.rsplit_once('.') {
            Some(("verifier", key)) => format!("[[verifier]]\n{key} = 0\n"),
            Some((table, key)) => format!("[{table}]\n{key} = 0\n"),
            None => format!("{path} = 0\n"),
        };
        match compile("checkrein.toml", &text) {
            Ok(compiled) => assert_eq!(compiled.warnings, Vec::<String>::new(), "{path}"),
            Err(ConfigError::NotYet { key, .. }) => panic!("the schema offers '{key}'"),
            Err(_) => {}
        }
    }
}

#[test]
fn the_defaults_name_every_key_of_the_schema() {
    let schema = schema();
    let mut found = Vec::new();
    keys(&schema, &schema["$defs"], "", &mut found);
    let mut table = String::new();
    let mut named = Vec::new();
    for line in config::DEFAULTS.lines() {
        let line = line.trim_start_matches(['#', ' ']);
        if line.starts_with('[') {
            let name = line.trim_start_matches('[');
            table = name.split(']').next().unwrap_or_default().to_owned();
        } else if let Some((key, _)) = line.split_once(" = ") {
            named.push(match table.as_str() {
                "" => key.to_owned(),
                table => format!("{table}.{key}"),
            });
        }
    }
    for (path, _) in &found {
        // The session's caps are "the same", shown by one of them; so are a profile's tables.
        if !path.starts_with("session_caps.") {
            let within = format!("{path}.");
            assert!(
                named.contains(path) || named.iter().any(|named| named.starts_with(&within)),
                "defaults.toml says nothing of '{path}'"
            );
        }
    }
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
fn invalid_samples_are_refused_or_warned_of() {
    for (name, text) in samples("invalid") {
        let expected = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# says: "));
        let expected = expected.unwrap_or_else(|| panic!("{name} does not begin with `# says: `"));
        let said = match compile(&name, &text) {
            Err(error) => error.to_string(),
            Ok(compiled) => compiled.warnings.join("\n"),
        };
        assert!(said.contains(expected), "{name} said {said:?}");
        assert!(said.contains(&name), "{said:?} does not name the file");
    }
}
