//! `policy-table DIR`: measures an exec policy by effect with one forbidden rule beside it: what
//! share of everyday commands goes through, and whether a spelling of the forbidden one or another
//! destructive act does. The recorded runs in DIR are no part of this repository.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::process::{Command, ExitCode};

#[path = "../../crates/execpolicy/tests/table/mod.rs"]
mod table;

use table::{Share, allowed, digest, lines, policy};

/// Least share that has to go through, in thousandths.
const MIN_PER_MILLE: usize = 970;

/// A set of recorded runs. `project_roots` gives, for a part of a run's id, the folders of its
/// project; commands start in the first of them.
struct RecordedRunDataSet {
    name: &'static str,
    files: &'static [&'static str],
    tools: &'static [&'static str],
    project_roots: &'static [(&'static str, &'static [&'static str])],
}

/// Words that a harness defines for its agents in its own container. They are no programs of a
/// shell.
const HARNESS: &[&str] = &[
    // Stands for an answer that the provider's filter kept back, in bash and SQL runs alike.
    "blocked",
    "connect_start",
    "connect_sendline",
    "connect_stop",
    "decompile",
    "disassemble",
    "set_cursors",
    "submit",
    "skip",
    "debug_start",
    "debug_exec",
    "goto",
    "scroll_down",
    "scroll_up",
];

const RECORDED: &[RecordedRunDataSet] = &[
    RecordedRunDataSet {
        name: "intercode bash",
        files: &["intercode.jsonl.gz"],
        tools: &["bash"],
        // The repository of its containers is the root of the file system. Where commands start is
        // in the Dockerfiles of princeton-nlp/intercode.
        project_roots: &[("/ctf__", &["/ctf", "/"]), ("", &["/"])],
    },
    RecordedRunDataSet {
        name: "SWE-agent and OpenHands",
        files: &["swe_agent_demos.jsonl.gz", "openhands.jsonl.gz"],
        tools: &["bash", "execute_bash"],
        project_roots: &[("", &["/workspace", "/testbed"])],
    },
];

pub(crate) fn print_policy_decision_table(arguments: &[String]) -> Result<ExitCode, String> {
    let [folder] = arguments else {
        return Err("needs the folder of the recorded runs".to_owned());
    };
    println!("policy {}: by effect, and rm forbidden", digest()?);
    let mut good = true;
    for runs in RECORDED {
        let mut scripts = Vec::new();
        for file in runs.files {
            scripts.extend(shell_scripts_of_recorded_runs(
                &Path::new(folder).join(file),
                runs,
            )?);
        }
        good &= check_policy_allowed_share(runs.name, &scripts)?;
    }
    let everyday = lines(include_str!(
        "../../crates/execpolicy/tests/data/everyday.txt"
    ));
    let project: &[&str] = &["/workspace/project"];
    let everyday: Vec<_> = everyday
        .into_iter()
        .map(|script| (project, script))
        .collect();
    good &= check_policy_allowed_share("everyday", &everyday)?;
    for (name, text) in [
        (
            "known spellings",
            include_str!("../../crates/execpolicy/tests/data/known.txt"),
        ),
        (
            "more spellings",
            include_str!("../../crates/execpolicy/tests/data/spellings.txt"),
        ),
        (
            "destructive acts",
            include_str!("../../crates/execpolicy/tests/data/destructive.txt"),
        ),
    ] {
        let scripts = lines(text);
        let loose = allowed(&policy(&[])?, &scripts);
        println!("{name}: {} of {} are allowed", loose.len(), scripts.len());
        for script in &loose {
            println!("  {script}");
        }
        good &= loose.is_empty();
    }
    good &= check_invalid_scripts_not_allowed(&policy(&[])?)?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Checks that scripts which bash rejects are not allowed. They are made from our lists by small
/// changes.
fn check_invalid_scripts_not_allowed(
    rules: &checkrein_execpolicy::RuleSet,
) -> Result<bool, String> {
    let sources = [
        lines(include_str!(
            "../../crates/execpolicy/tests/data/everyday.txt"
        )),
        lines(include_str!(
            "../../crates/execpolicy/tests/data/spellings.txt"
        )),
    ]
    .concat();
    // A fixed seed: every run judges the same scripts.
    let mut seed = 1_u64;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap_or(0) % below.max(1)
    };
    let mut rejected = Vec::new();
    while rejected.len() < 2_000 {
        let Some(source) = sources.get(next(sources.len())) else {
            continue;
        };
        let mut text: Vec<char> = source.chars().collect();
        for _ in 0..=next(3) {
            let at = next(text.len());
            match next(3) {
                0 if text.len() > 1 => drop(text.remove(at)),
                1 => {
                    let sign = "'\"`$(){}[]<>|&;\\#\n!"
                        .chars()
                        .nth(next(21))
                        .unwrap_or('\'');
                    text.insert(at, sign);
                }
                _ => {
                    let other = next(text.len());
                    text.swap(at, other);
                }
            }
        }
        let text: String = text.into_iter().collect();
        // A script that still parses may well be allowed and is left out.
        if !bash_parses(&text)? {
            rejected.push(text);
        }
    }
    let loose = allowed(rules, &rejected);
    println!(
        "scripts that bash rejects: {} of {} are allowed",
        loose.len(),
        rejected.len()
    );
    for script in &loose {
        println!("  {}", script.replace('\n', "\\n"));
    }
    Ok(loose.is_empty())
}

/// Counts and prints the share that goes through. Returns whether it is large enough.
fn check_policy_allowed_share(
    name: &str,
    scripts: &[(&'static [&'static str], String)],
) -> Result<bool, String> {
    let mut share = Share::default();
    let mut policies = BTreeMap::new();
    for (roots, script) in scripts {
        let rules = match policies.entry(*roots) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(policy(roots)?),
        };
        // Left out: scripts with inner code that no shell parses, such as that of `sh -c`.
        let code = checkrein_execpolicy::evaluate_script(rules, script).unresolved;
        if code.iter().all(|code| bash_parses(code).unwrap_or(true)) {
            share.add(rules, script);
        }
    }
    let per_mille = share.per_mille();
    let (count, spellings) = share.count();
    println!(
        "{name}: {}.{} % of {count} programs with their flags, from {} scripts; {spellings} spellings of rm beside them",
        per_mille / 10,
        per_mille % 10,
        scripts.len()
    );
    for (unit, (why, script)) in &share.interrupted {
        let script: String = script.chars().take(120).collect();
        println!("  {unit} | {why} | {}", script.replace('\n', "\\n"));
    }
    Ok(per_mille >= MIN_PER_MILLE)
}

/// Returns whether an output says that the words were no valid command.
fn output_says_command_is_invalid(result: &str) -> bool {
    [
        "command not found",
        "unknown predicate",
        "invalid option",
        "missing operand",
        "unrecognized option",
        "You must specify one of",
        "cannot execute binary",
    ]
    .iter()
    .any(|said| result.contains(said))
}

/// Returns the scripts of these runs that a shell has accepted: `bash -n` does, and the recorded
/// run did not fail.
fn shell_scripts_of_recorded_runs(
    path: &Path,
    runs: &RecordedRunDataSet,
) -> Result<Vec<(&'static [&'static str], String)>, String> {
    let unpacked = Command::new("gzip")
        .arg("-dc")
        .arg(path)
        .output()
        .map_err(|error| format!("gzip: {error}"))?;
    if !unpacked.status.success() {
        return Err(format!("{} cannot be unpacked", path.display()));
    }
    let text = String::from_utf8_lossy(&unpacked.stdout);
    let mut scripts = Vec::new();
    let mut roots: &[&str] = &[];
    for line in text.lines() {
        let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        let field = |name: &str| entry.get(name).and_then(serde_json::Value::as_str);
        if let Some(id) = field("id").filter(|_| field("type") == Some("session")) {
            let mut grounds = runs.project_roots.iter();
            let ground = grounds.find(|(part, _)| id.contains(part));
            roots = ground.map_or(&[], |(_, roots)| roots);
        }
        let script = entry
            .get("args")
            .and_then(|args| args.get("command"))
            .and_then(serde_json::Value::as_str);
        if let (Some("tool_call"), Some(tool), Some(script)) =
            (field("type"), field("tool"), script)
            && runs.tools.contains(&tool)
            && !script
                .split_whitespace()
                .next()
                .is_some_and(|word| HARNESS.contains(&word))
            && entry.get("error").and_then(serde_json::Value::as_bool) != Some(true)
            && !field("result").is_some_and(output_says_command_is_invalid)
        {
            // One harness had its commands written this way and took the wrapper off before it ran
            // them.
            let inner = script
                .strip_prefix("execute[")
                .and_then(|rest| rest.strip_suffix(']'));
            let script = inner.unwrap_or(script);
            let script = script.strip_prefix("cmd ").unwrap_or(script);
            // Backticks of a Markdown fence may parse as a command substitution.
            if !script.contains("```") && bash_parses(script)? {
                scripts.push((roots, script.to_owned()));
            }
        }
    }
    Ok(scripts)
}

fn bash_parses(script: &str) -> Result<bool, String> {
    let status = Command::new("bash")
        .args(["-n", "-c", "--", script])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .map_err(|error| format!("bash: {error}"))?;
    Ok(status.success())
}
