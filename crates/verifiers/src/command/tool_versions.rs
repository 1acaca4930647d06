//! Finds out with which versions of which tools a check ran. Only tools known by name are asked,
//! each once a day: a check must not take longer for what only a later reader wants to know.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::Command as Process;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use checkrein_core::digest::Digest;

use super::definition::SHELL_SYNTAX;
use super::process::bounded_command::{self, CommandLimits, LimitedCommandResult};
use super::programs::find_program_in_path;
use super::withheld;
use crate::private_file::write_private_file;
use crate::{VerifierJob, regular_file};

/// Known tools and the argument that makes each print its version.
const TOOLS: &[(&[&str], &str)] = &[
    (
        &[
            "cargo", "rustc", "python", "python3", "pytest", "tox", "uv", "poetry", "ruff", "mypy",
            "node", "npm", "pnpm", "yarn", "bun", "deno", "npx", "tsc", "make", "just", "mvn",
            "gradle", "dotnet", "ruby", "php",
        ],
        "--version",
    ),
    (&["go"], "version"),
    (&["java"], "-version"),
];
/// Tools asked for one check.
const MAX_TOOLS: usize = 4;
/// Characters kept of an answer.
const MAX_ANSWER: usize = 120;
/// How long a tool may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Limit in bytes of an answer; a longer one is discarded.
const LONGEST: u64 = 64 * 1024;
/// Bytes of the cache file that are read.
const LARGEST: u64 = 1 << 20;
/// Seconds for which an answer is cached: what a shim resolves to changes without the shim.
const A_DAY: u64 = 24 * 3600;

/// Answers by cache key, each with its time; stored in one file of the state folder.
type ToolVersionCache = BTreeMap<String, (u64, String)>;

/// Returns the versions of the tools that `run` names, in its order; empty if none is known.
pub(super) fn tool_versions(run: &str, job: &VerifierJob<'_>) -> Vec<String> {
    let mut tools: Vec<(&str, &str)> = Vec::new();
    // Words, not a parsed command: a tool that is only mentioned costs one question too many, no
    // wrong verdict.
    for word in run.split(|c: char| c.is_whitespace() || SHELL_SYNTAX.contains(&c)) {
        let flag = TOOLS.iter().find(|(names, _)| names.contains(&word));
        if let Some((_, flag)) = flag
            && !tools.iter().any(|(known, _)| *known == word)
            && tools.len() < MAX_TOOLS
        {
            tools.push((word, flag));
        }
    }
    if tools.is_empty() {
        return Vec::new();
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| age.as_secs());
    let mut known = load_tool_version_cache(job.tool_versions_file);
    let before = known.len();
    // Expired answers are dropped here, so that the file cannot grow for ever.
    known.retain(|_, (at, _)| now.saturating_sub(*at) < A_DAY);
    let mut changed = known.len() != before;
    let mut versions = Vec::new();
    for (tool, flag) in tools {
        let Some(program) = find_program_in_path(tool, job.env) else {
            continue;
        };
        let stamp = tool_version_cache_key(&program, job);
        let answer = match known.get(&stamp) {
            Some((_, answer)) => answer.clone(),
            None => {
                changed = true;
                // A tool that does not answer is remembered as the empty text, so that it is not
                // waited for again today.
                let answer = query_tool_version(&program, flag, job).unwrap_or_default();
                known.insert(stamp, (now, answer.clone()));
                answer
            }
        };
        // Most tools print their own name; for the others a bare number would say nothing.
        match answer.as_str() {
            "" => {}
            named if named.to_lowercase().contains(tool) => versions.push(answer),
            number => versions.push(format!("{tool} {number}")),
        }
    }
    if changed {
        save_tool_version_cache(job.tool_versions_file, &known);
    }
    versions
}

/// Returns the cache key of a tool. A different file, or a different folder that a shim looks at,
/// is a different tool.
fn tool_version_cache_key(program: &Path, job: &VerifierJob<'_>) -> String {
    let (len, changed) =
        std::fs::metadata(program).map_or((0, None), |file| (file.len(), file.modified().ok()));
    let changed = changed
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |at| at.as_nanos());
    let parts = [
        program.as_os_str().as_encoded_bytes(),
        job.root.as_os_str().as_encoded_bytes(),
        &len.to_le_bytes(),
        &changed.to_le_bytes(),
    ];
    let mut stamp = Digest::hash_parts(parts).to_hex();
    stamp.truncate(32);
    stamp
}

/// Returns the first line that is not blank of what the tool prints.
fn query_tool_version(program: &Path, flag: &str, job: &VerifierJob<'_>) -> Option<String> {
    let (env, _) = withheld::filter_environment(job.env, &[]);
    let mut command = Process::new(program);
    command
        .arg(flag)
        .current_dir(job.root)
        .env_clear()
        .envs(env);
    // It runs beside the check and must not outlast the answer that the agent waits for.
    let left = job
        .deadline
        .map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let bounds = CommandLimits {
        timeout: left.map_or(PATIENCE, |left| left.min(PATIENCE)),
        max_bytes: LONGEST,
        // Some tools, such as `java -version`, print it on stderr.
        include_stderr: true,
    };
    let LimitedCommandResult::Complete(said) =
        bounded_command::run_command_with_limits(command, bounds)
    else {
        return None;
    };
    let text = String::from_utf8_lossy(&said).into_owned();
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(MAX_ANSWER).collect())
}

fn load_tool_version_cache(file: &Path) -> ToolVersionCache {
    let mut bytes = Vec::new();
    let read = regular_file::open_regular_file(file)
        .and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
    match read {
        Ok(_) => serde_json::from_slice(&bytes).unwrap_or_default(),
        Err(_) => ToolVersionCache::default(),
    }
}

/// Checks run in parallel and so may this: the last writer wins, and the only loss is an answer
/// that is asked for again.
fn save_tool_version_cache(file: &Path, known: &ToolVersionCache) {
    // The name is unique per thread, and the rename atomic: readers see the old file or the new
    // one, whole.
    let fresh = file.with_extension(format!(
        "{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let written = serde_json::to_vec(known)
        .map_err(std::io::Error::from)
        .and_then(|bytes| write_private_file(&fresh, &bytes))
        .and_then(|()| std::fs::rename(&fresh, file));
    if written.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
}
