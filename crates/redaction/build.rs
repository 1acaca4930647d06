//! Compiles the rule files into static tables, so that a program with nothing to redact parses no
//! rule.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

#[path = "src/trigram.rs"]
#[expect(dead_code, reason = "the library reads the map")]
mod trigram;

/// Rules of gitleaks that are not used, and why.
const SKIPPED_RULES: &[(&str, &str)] = &[
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
/// Rules whose secret is the whole match, not the first group.
const WHOLE_MATCH: &[&str] = &["microsoft-teams-webhook"];
/// Keywords that are frequent in ordinary text, with the least number of token characters that must
/// follow them.
const TAIL_LENGTHS: &[(&str, &str, u8)] = &[
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
struct SecretRuleEntry {
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
struct SecretArgumentTableEntry {
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

struct SecretRuleKeyword {
    text: String,
    tail: u8,
    assigned: bool,
    rule: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=rules");
    // Included below with `#[path]`, which Cargo does not track.
    println!("cargo::rerun-if-changed=src/trigram.rs");
    // Our own rules come first: rules are applied in the order of the table.
    let mut rules: Vec<SecretRuleEntry> =
        serde_json::from_str(&std::fs::read_to_string("rules/checkrein.json")?)?;
    let kept: Vec<SecretRuleEntry> =
        serde_json::from_str(&std::fs::read_to_string("rules/gitleaks.json")?)?;
    let taken = |rule: &SecretRuleEntry| !SKIPPED_RULES.iter().any(|(id, _)| *id == rule.id);
    rules.extend(
        kept.into_iter()
            .filter(taken)
            .map(widen_gitleaks_rule_pattern),
    );
    let programs: Vec<SecretArgumentTableEntry> =
        serde_json::from_str(&std::fs::read_to_string("rules/programs.json")?)?;

    let mut out = String::new();
    write_redaction_rules_code(&mut out, &rules)?;
    generate_secret_keyword_table(&mut out, &rules, &programs)?;
    generate_program_secrets_table(&mut out, &programs)?;
    let folder = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&folder).join("tables.rs"), out)?;
    Ok(())
}

/// Widens a pattern of gitleaks, which is made for files. Here secrets also occur in JSON and in
/// prose: quotes may be escaped, and any punctuation ends a secret. The part of a name before the
/// keyword does not matter and is dropped from the pattern.
fn widen_gitleaks_rule_pattern(mut rule: SecretRuleEntry) -> SecretRuleEntry {
    rule.pattern = rule
        .pattern
        .replace(r"[\w.-]{0,50}?", "")
        .replace(r#"[\s'"]{0,3}"#, r#"[\s'"\\]{0,5}"#)
        .replace(r#"[\x60'"\s=]{0,5}"#, r#"[\x60'"\s=\\]{0,8}"#)
        .replace(r#"(?:[\x60'"\s;]|\\[nr]|$)"#, "(?:[^A-Za-z0-9_]|$)");
    if WHOLE_MATCH.contains(&rule.id.as_str()) {
        rule.pattern = format!("({})", rule.pattern);
    }
    rule.check = Some("value".to_owned());
    rule
}

fn write_redaction_rules_code(
    out: &mut String,
    rules: &[SecretRuleEntry],
) -> Result<(), Box<dyn Error>> {
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
            // A misspelled check fails the build: ignored, it would widen or narrow the rule
            // silently.
            Some(other) => return Err(format!("{}: no check is named {other}", rule.id).into()),
        };
        writeln!(
            out,
            "    SecretRule::new({:?}, {:?}, SecretMatchCondition::{check}, {:?}, &{:?}),",
            rule.id, rule.pattern, rule.min_entropy, rule.except
        )?;
    }
    writeln!(out, "];")?;
    Ok(())
}

fn generate_secret_keyword_table(
    out: &mut String,
    rules: &[SecretRuleEntry],
    programs: &[SecretArgumentTableEntry],
) -> Result<(), Box<dyn Error>> {
    let mut keywords = Vec::new();
    for (rule, entry) in rules.iter().enumerate() {
        for text in &entry.keywords {
            let text = text.to_ascii_lowercase();
            let known = |(id, word, _): &&(&str, &str, u8)| *id == entry.id && *word == text;
            let tail = TAIL_LENGTHS
                .iter()
                .find(known)
                .map_or(entry.tail, |(_, _, tail)| *tail);
            match text.len() {
                0 | 1 => return Err(format!("{}: {text:?} is no keyword", entry.id).into()),
                // The map is indexed by three bytes, so a keyword of two gets every byte that can
                // follow it in a token.
                2 => keywords.extend("abcdefghijklmnopqrstuvwxyz0123456789_-.~".chars().map(
                    |next| SecretRuleKeyword {
                        text: format!("{text}{next}"),
                        // The added byte is the first one of the tail.
                        tail: tail.saturating_sub(1),
                        assigned: entry.assigned,
                        rule,
                    },
                )),
                _ => keywords.push(SecretRuleKeyword {
                    text,
                    tail,
                    assigned: entry.assigned,
                    rule,
                }),
            }
        }
    }
    let mut map = [0_u64; trigram::WORDS];
    let mut by_hash: BTreeMap<u16, Vec<&SecretRuleKeyword>> = BTreeMap::new();
    for keyword in &keywords {
        by_hash
            .entry(trigram::leading_trigram_index(keyword.text.as_bytes()))
            .or_default()
            .push(keyword);
    }
    let mut names: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for name in programs.iter().flat_map(|entry| &entry.programs) {
        // As above: a program of two letters is found with the blank after it.
        let word = if name.len() < 3 {
            format!("{name} ")
        } else {
            name.clone()
        };
        names
            .entry(trigram::leading_trigram_index(word.as_bytes()))
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
        "pub(crate) static KEYWORDS: [(u16, SecretMatchKeyword); {count}] = ["
    )?;
    // Sorted by hash: the library searches the table with `partition_point`.
    for (hash, keywords) in &by_hash {
        for SecretRuleKeyword {
            text,
            tail,
            assigned,
            rule,
        } in keywords
        {
            writeln!(
                out,
                "    ({hash}, SecretMatchKeyword {{ text: {text:?}, tail: {tail}, assigned: {assigned}, rule: {rule} }}),"
            )?;
        }
    }
    writeln!(out, "];")?;
    // A program can have several entries in the table, but is looked up by its name once.
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

fn generate_program_secrets_table(
    out: &mut String,
    programs: &[SecretArgumentTableEntry],
) -> Result<(), Box<dyn Error>> {
    let count = programs.len();
    writeln!(
        out,
        "pub(crate) static PROGRAMS: [ProgramSecretOption; {count}] = ["
    )?;
    for entry in programs {
        // Exactly one place per entry; the first one that is given counts.
        let place = if let Some(options) = &entry.attached {
            format!("SecretArgumentPlace::Attached(&{options:?})")
        } else if let Some(options) = &entry.value {
            let prefix = entry.prefix.as_deref().unwrap_or_default();
            format!(
                "SecretArgumentPlace::OptionValue {{ options: &{options:?}, prefix: {prefix:?} }}"
            )
        } else if let (Some(options), Some(separator)) = (&entry.user, entry.separator) {
            format!(
                "SecretArgumentPlace::AfterUser {{ options: &{options:?}, separator: {separator:?} }}"
            )
        } else if let Some(options) = &entry.pair {
            format!("SecretArgumentPlace::PairValue(&{options:?})")
        } else if let Some(nth) = entry.operand {
            format!("SecretArgumentPlace::Operand({nth})")
        } else if let Some(flag) = &entry.last_operand {
            format!("SecretArgumentPlace::LastOperand {{ flag: {flag:?} }}")
        } else if let Some(separator) = entry.login {
            format!("SecretArgumentPlace::Login({separator:?})")
        } else if let Some(options) = &entry.stdin {
            format!("SecretArgumentPlace::StandardInput(&{options:?})")
        } else if let Some(prefixes) = &entry.behind {
            format!("SecretArgumentPlace::Behind(&{prefixes:?})")
        } else if let Some(names) = &entry.setting {
            format!("SecretArgumentPlace::Setting(&{names:?})")
        } else if let Some(option) = &entry.variable {
            format!("SecretArgumentPlace::Variable {{ option: {option:?} }}")
        } else if let Some(options) = &entry.file {
            format!("SecretArgumentPlace::File(&{options:?})")
        } else {
            return Err(format!("{:?}: no place of a secret", entry.programs).into());
        };
        writeln!(
            out,
            "    ProgramSecretOption {{ programs: &{:?}, after: &{:?}, clusters: {}, separate: {}, place: {place} }},",
            entry.programs, entry.after, entry.clusters, entry.separate
        )?;
    }
    writeln!(out, "];")?;
    Ok(())
}
