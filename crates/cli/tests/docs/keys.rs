//! The key tables of docs/configuration.md, written from the schema (type, meaning) and from
//! `defaults.toml` (default, or an example where there is none).

use std::fmt::Write as _;
use std::path::PathBuf;

use checkrein_runtime::config::{Compiled, DEFAULTS, Driver, Source, compile};
use serde_json::Value;

use super::{read, root};

const PAGE: &str = "docs/configuration.md";
const BEGIN: &str =
    "<!-- begin: written by CHECKREIN_BLESS=1 cargo test -p checkrein-cli --test docs -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn the_configuration_page_has_every_key_of_the_schema() {
    let page = read(PAGE);
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    let tables = tables();
    if std::env::var_os("CHECKREIN_BLESS").is_some() && shown != tables {
        let page = format!("{before}{BEGIN}{tables}{END}{after}");
        std::fs::write(root().join(PAGE), page).unwrap();
        return;
    }
    assert_eq!(shown, tables, "CHECKREIN_BLESS=1 rewrites it");
}

fn tables() -> String {
    let schema: Value = serde_json::from_str(&read("schema/checkrein.schema.json")).unwrap();
    let manual = manual();
    let mut text = String::new();
    let mut inner = Vec::new();
    let mut single = Vec::new();
    for (key, value) in schema["properties"].as_object().unwrap() {
        match table_of(&schema, value) {
            Some(table) => inner.push((key, value, table)),
            None if value["additionalProperties"].is_object() => {}
            None => single.push((key, value)),
        }
    }
    // As in the manual, which begins with what is set most.
    let place = |table: &str, key: &str| {
        let found = |line: &Line| line.table == table && (key.is_empty() || line.key == key);
        manual.iter().position(found).unwrap_or(usize::MAX)
    };
    inner.sort_by_key(|(key, _, _)| place(key, ""));
    single.sort_by_key(|(key, _)| place("", key));
    text.push_str("\n### At the top\n\n");
    rows(&mut text, &schema, &manual, "", &single);
    for (key, value, table) in inner {
        let header = match value["items"].is_object() {
            true => format!("[[{key}]]"),
            false => format!("[{key}]"),
        };
        write!(text, "\n### `{header}`\n\n{}\n\n", words(value)).unwrap();
        let mut keys: Vec<_> = table["properties"].as_object().unwrap().iter().collect();
        keys.sort_by_key(|(inside, _)| place(key, inside));
        rows(&mut text, &schema, &manual, key, &keys);
    }
    for (key, value) in schema["properties"].as_object().unwrap() {
        if value["additionalProperties"].is_object() {
            write!(text, "\n### `[{key}.NAME]`\n\n{}\n", words(value)).unwrap();
            text.push_str("Its keys are those of above, for instance `[profile.ci.stance]`.\n");
        }
    }
    text.push('\n');
    text
}

fn rows(
    text: &mut String,
    schema: &Value,
    manual: &[Line],
    table: &str,
    keys: &[(&String, &Value)],
) {
    text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    for (key, value) in keys {
        let default = default(manual, table, key);
        let (kind, meaning) = (kind(schema, value), meaning(schema, value));
        writeln!(text, "| `{key}` | {kind} | {default} | {meaning} |").unwrap();
    }
}

/// A key in `defaults.toml`, in force or commented out.
struct Line {
    table: String,
    key: String,
    value: String,
    in_force: bool,
}

fn manual() -> Vec<Line> {
    let mut found = Vec::new();
    let mut table = String::new();
    for line in DEFAULTS.lines() {
        let text = line.trim_start_matches(['#', ' ']);
        if text.starts_with('[') {
            let name = text.trim_start_matches('[');
            table = name.split(']').next().unwrap_or_default().to_owned();
        } else if let Some((key, rest)) = text.split_once(" = ") {
            // TOML itself knows best where the value ends and the comment begins.
            let read: toml_edit::DocumentMut = format!("{key} = {rest}").parse().unwrap();
            let value = read[key].as_value().unwrap().clone();
            found.push(Line {
                table: table.clone(),
                key: key.to_owned(),
                value: value.decorated("", "").to_string(),
                in_force: !line.starts_with('#'),
            });
        }
    }
    found
}

/// What holds without the key: as `defaults.toml` says, put to the test where it is only a comment.
fn default(manual: &[Line], table: &str, key: &str) -> String {
    let line = manual
        .iter()
        .find(|line| line.table == table && line.key == key);
    let required = ["name", "run"];
    match line {
        Some(line) if line.in_force => format!("`{}`", line.value),
        Some(line) if table == "verifier" && required.contains(&key) => {
            format!("required, such as `{}`", line.value)
        }
        Some(line) if changes_nothing(line) => format!("`{}`", line.value),
        Some(line) => format!("none; such as `{}`", line.value),
        None => "none".to_owned(),
    }
}

fn changes_nothing(line: &Line) -> bool {
    let of = |key: &str| -> Option<Compiled> {
        let text = match line.table.as_str() {
            "" => key.to_owned(),
            "verifier" => format!("[[verifier]]\nname = \"tests\"\nrun = \"cargo test\"\n{key}"),
            table => format!("[{table}]\n{key}"),
        };
        let name = PathBuf::from("checkrein.toml");
        compile(Some(&Source { name, text }), None, Driver::Hook).ok()
    };
    let with = of(&format!("{} = {}", line.key, line.value));
    with.is_some_and(|with| with.policy == of("").unwrap().policy)
}

/// The table behind a `$ref`, of one or of a list.
fn table_of<'a>(schema: &'a Value, value: &Value) -> Option<&'a Value> {
    let name = value["$ref"].as_str().or(value["items"]["$ref"].as_str())?;
    let table = &schema["$defs"][name.rsplit('/').next()?];
    table["properties"].is_object().then_some(table)
}

/// A named type behind a `$ref` that may be left out.
fn named<'a>(schema: &'a Value, value: &Value) -> Option<&'a Value> {
    let name = value["anyOf"][0]["$ref"].as_str()?;
    Some(&schema["$defs"][name.rsplit('/').next()?])
}

fn kind(schema: &Value, value: &Value) -> String {
    let of = named(schema, value).unwrap_or(value);
    let choices: Vec<String> = of["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|choice| format!("`{}`", choice["const"]))
        .collect();
    if !choices.is_empty() {
        return choices.join(", ");
    }
    if of["pattern"].is_string() {
        // "A span of time: 90s, 10m."
        let words = words(of);
        let kind = words.split(':').next().unwrap();
        return kind.trim_start_matches("A ").to_owned();
    }
    let name = of["type"].as_str().or(of["type"][0].as_str()).unwrap();
    let kind = match name {
        "integer" => "whole number",
        "number" => "number",
        "string" => "text",
        "boolean" => "`true`, `false`",
        "array" => "list of text",
        other => panic!("no word for the type {other}"),
    };
    kind.to_owned()
}

fn meaning(schema: &Value, value: &Value) -> String {
    let mut text = words(value);
    let choices = named(schema, value).and_then(|of| of["oneOf"].as_array());
    let choices: Vec<String> = choices
        .into_iter()
        .flatten()
        .map(|choice| {
            let (name, words) = (choice["const"].as_str().unwrap(), words(choice));
            let (first, rest) = words.split_at(1);
            let rest = rest.trim_end_matches('.');
            format!("`{name}`: {}{rest}", first.to_lowercase())
        })
        .collect();
    if !choices.is_empty() {
        write!(text, " {}.", choices.join("; ")).unwrap();
    }
    text.replace('|', "\\|")
}

/// The doc comment, on one line.
fn words(value: &Value) -> String {
    value["description"].as_str().unwrap().replace('\n', " ")
}
