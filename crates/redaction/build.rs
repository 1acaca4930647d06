//! Turns the rule files into static tables, so that a program that hides nothing reads no rule.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

#[path = "src/trigram.rs"]
#[expect(dead_code, reason = "the library reads the map")]
mod trigram;

/// Rules of gitleaks that are not taken, and why.
const NOT_TAKEN: &[(&str, &str)] = &[
    (
        "curl-auth-header",
        "headers are read by rules of ours, in every command",
    ),
    ("curl-auth-user", "the command line of curl is read as one"),
    (
        "generic-api-key",
        "see rules/README.md: too many ordinary words",
    ),
    (
        "hashicorp-tf-password",
        "meant for .tf files only; `password` covers them",
    ),
    ("jwt", "`jwt` of ours covers it"),
    ("kubernetes-secret-yaml", "hides the first entry only"),
    (
        "private-key",
        "`private-key` of ours covers it, in linear time",
    ),
    (
        "sourcegraph-access-token",
        "takes every commit id beside its keyword",
    ),
];
/// The first group of this pattern is not its secret.
const WHOLE: &[&str] = &["microsoft-teams-webhook"];
/// Keywords that ordinary text is full of, and the least number of token characters after them.
const TAILS: &[(&str, &str, u8)] = &[
    ("airtable-personnal-access-token", "pat", 79),
    ("authress-service-client-access-key", "ext_", 5),
    ("authress-service-client-access-key", "sc_", 5),
    ("azure-ad-client-secret", "q~", 31),
    ("clickhouse-cloud-api-secret-key", "4b1d", 38),
    ("flyio-access-token", "fm1", 8),
    ("harness-api-key", "pat.", 22),
    ("harness-api-key", "sat.", 22),
    ("jwt-base64", "zxlk", 6),
    ("octopus-deploy-api-key", "api-", 26),
    ("square-access-token", "eaaa", 22),
    ("twilio-api-key", "sk", 32),
    ("vault-service-token", "s.", 24),
];

#[derive(Deserialize)]
struct RuleEntry {
    id: String,
    pattern: String,
    keywords: Vec<String>,
    #[serde(default)]
    tail: u8,
    #[serde(default)]
    assigned: bool,
    #[serde(default)]
    check: Option<String>,
    #[serde(default)]
    min_entropy: f64,
    #[serde(default)]
    except: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramEntry {
    programs: Vec<String>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    clusters: bool,
    #[serde(default)]
    separate: bool,
    attached: Option<Vec<String>>,
    value: Option<Vec<String>>,
    prefix: Option<String>,
    user: Option<Vec<String>>,
    separator: Option<char>,
    pair: Option<Vec<String>>,
    operand: Option<usize>,
    last_operand: Option<String>,
    login: Option<char>,
    stdin: Option<Vec<String>>,
    behind: Option<Vec<String>>,
    setting: Option<Vec<String>>,
    variable: Option<String>,
    file: Option<Vec<String>>,
}

struct Keyword {
    text: String,
    tail: u8,
    assigned: bool,
    rule: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=rules");
    println!("cargo::rerun-if-changed=src/trigram.rs");
    let mut rules: Vec<RuleEntry> =
        serde_json::from_str(&std::fs::read_to_string("rules/checkrein.json")?)?;
    let kept: Vec<RuleEntry> =
        serde_json::from_str(&std::fs::read_to_string("rules/gitleaks.json")?)?;
    let taken = |rule: &RuleEntry| !NOT_TAKEN.iter().any(|(id, _)| *id == rule.id);
    rules.extend(kept.into_iter().filter(taken).map(widened));
    let programs: Vec<ProgramEntry> =
        serde_json::from_str(&std::fs::read_to_string("rules/programs.json")?)?;

    let mut out = String::new();
    write_rules(&mut out, &rules)?;
    write_keywords(&mut out, &rules, &programs)?;
    write_programs(&mut out, &programs)?;
    let folder = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&folder).join("tables.rs"), out)?;
    Ok(())
}

/// A rule of gitleaks finds a secret in a file. Here a secret also stands in JSON and in prose:
/// quotes may be escaped, and any sign of punctuation ends it. What stands before a name decides
/// nothing and is not read.
fn widened(mut rule: RuleEntry) -> RuleEntry {
    rule.pattern = rule
        .pattern
        .replace(r"[\w.-]{0,50}?", "")
        .replace(r#"[\s'"]{0,3}"#, r#"[\s'"\\]{0,5}"#)
        .replace(r#"[\x60'"\s=]{0,5}"#, r#"[\x60'"\s=\\]{0,8}"#)
        .replace(r#"(?:[\x60'"\s;]|\\[nr]|$)"#, "(?:[^A-Za-z0-9_]|$)");
    if WHOLE.contains(&rule.id.as_str()) {
        rule.pattern = format!("({})", rule.pattern);
    }
    rule.check = Some("value".to_owned());
    rule
}

fn write_rules(out: &mut String, rules: &[RuleEntry]) -> Result<(), Box<dyn Error>> {
    writeln!(
        out,
        "pub(crate) static RULES: [SecretRule; {}] = [",
        rules.len()
    )?;
    for rule in rules {
        let check = match rule.check.as_deref() {
            None => "Any",
            Some("has_digit") => "HasDigit",
            Some("value") => "Value",
            Some("not_a_path") => "NotAPath",
            Some("token") => "Token",
            Some(other) => return Err(format!("{}: no check is named {other}", rule.id).into()),
        };
        writeln!(
            out,
            "    SecretRule::new({:?}, {:?}, SecretCheck::{check}, {:?}, &{:?}),",
            rule.id, rule.pattern, rule.min_entropy, rule.except
        )?;
    }
    writeln!(out, "];")?;
    Ok(())
}

fn write_keywords(
    out: &mut String,
    rules: &[RuleEntry],
    programs: &[ProgramEntry],
) -> Result<(), Box<dyn Error>> {
    let mut keywords = Vec::new();
    for (rule, entry) in rules.iter().enumerate() {
        for text in &entry.keywords {
            let text = text.to_ascii_lowercase();
            let known = |(id, word, _): &&(&str, &str, u8)| *id == entry.id && *word == text;
            let tail = TAILS
                .iter()
                .find(known)
                .map_or(entry.tail, |(_, _, tail)| *tail);
            match text.len() {
                0 | 1 => return Err(format!("{}: {text:?} is no keyword", entry.id).into()),
                // What is looked for is three bytes long.
                2 => keywords.extend("abcdefghijklmnopqrstuvwxyz0123456789_-.~".chars().map(
                    |next| Keyword {
                        text: format!("{text}{next}"),
                        tail: tail.saturating_sub(1),
                        assigned: entry.assigned,
                        rule,
                    },
                )),
                _ => keywords.push(Keyword {
                    text,
                    tail,
                    assigned: entry.assigned,
                    rule,
                }),
            }
        }
    }
    let mut map = [0_u64; trigram::WORDS];
    let mut by_hash: BTreeMap<u16, Vec<&Keyword>> = BTreeMap::new();
    for keyword in &keywords {
        by_hash
            .entry(trigram::of_start(keyword.text.as_bytes()))
            .or_default()
            .push(keyword);
    }
    let mut names: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for name in programs.iter().flat_map(|entry| &entry.programs) {
        // Two letters and the blank after them.
        let word = if name.len() < 3 {
            format!("{name} ")
        } else {
            name.clone()
        };
        names
            .entry(trigram::of_start(word.as_bytes()))
            .or_default()
            .push(name);
    }
    for hash in by_hash.keys().chain(names.keys()) {
        if let Some(word) = map.get_mut(usize::from(hash / 64)) {
            *word |= 1 << (hash % 64);
        }
    }
    writeln!(
        out,
        "pub(crate) static MAP: [u64; crate::trigram::WORDS] = {map:?};"
    )?;
    let count = keywords.len();
    writeln!(
        out,
        "pub(crate) static KEYWORDS: [(u16, Keyword); {count}] = ["
    )?;
    for (hash, keywords) in &by_hash {
        for Keyword {
            text,
            tail,
            assigned,
            rule,
        } in keywords
        {
            writeln!(
                out,
                "    ({hash}, Keyword {{ text: {text:?}, tail: {tail}, assigned: {assigned}, rule: {rule} }}),"
            )?;
        }
    }
    writeln!(out, "];")?;
    for found in names.values_mut() {
        found.sort_unstable();
        found.dedup();
    }
    let count: usize = names.values().map(Vec::len).sum();
    writeln!(
        out,
        "pub(crate) static PROGRAM_NAMES: [(u16, &str); {count}] = ["
    )?;
    for (hash, found) in &names {
        for name in found {
            writeln!(out, "    ({hash}, {name:?}),")?;
        }
    }
    writeln!(out, "];")?;
    Ok(())
}

fn write_programs(out: &mut String, programs: &[ProgramEntry]) -> Result<(), Box<dyn Error>> {
    let count = programs.len();
    writeln!(
        out,
        "pub(crate) static PROGRAMS: [ProgramSecret; {count}] = ["
    )?;
    for entry in programs {
        let place = if let Some(options) = &entry.attached {
            format!("SecretPlace::Attached(&{options:?})")
        } else if let Some(options) = &entry.value {
            let prefix = entry.prefix.as_deref().unwrap_or_default();
            format!("SecretPlace::OptionValue {{ options: &{options:?}, prefix: {prefix:?} }}")
        } else if let (Some(options), Some(separator)) = (&entry.user, entry.separator) {
            format!("SecretPlace::AfterUser {{ options: &{options:?}, separator: {separator:?} }}")
        } else if let Some(options) = &entry.pair {
            format!("SecretPlace::PairValue(&{options:?})")
        } else if let Some(nth) = entry.operand {
            format!("SecretPlace::Operand({nth})")
        } else if let Some(flag) = &entry.last_operand {
            format!("SecretPlace::LastOperand {{ flag: {flag:?} }}")
        } else if let Some(separator) = entry.login {
            format!("SecretPlace::Login({separator:?})")
        } else if let Some(options) = &entry.stdin {
            format!("SecretPlace::StandardInput(&{options:?})")
        } else if let Some(prefixes) = &entry.behind {
            format!("SecretPlace::Behind(&{prefixes:?})")
        } else if let Some(names) = &entry.setting {
            format!("SecretPlace::Setting(&{names:?})")
        } else if let Some(option) = &entry.variable {
            format!("SecretPlace::Variable {{ option: {option:?} }}")
        } else if let Some(options) = &entry.file {
            format!("SecretPlace::File(&{options:?})")
        } else {
            return Err(format!("{:?}: no place of a secret", entry.programs).into());
        };
        writeln!(
            out,
            "    ProgramSecret {{ programs: &{:?}, after: &{:?}, clusters: {}, separate: {}, place: {place} }},",
            entry.programs, entry.after, entry.clusters, entry.separate
        )?;
    }
    writeln!(out, "];")?;
    Ok(())
}
