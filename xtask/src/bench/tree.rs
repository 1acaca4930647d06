//! `bench tree`: measures what a prompt and a stop cost in a tree of many files, beside `git
//! status` of the same tree.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::bench_repo::BenchRepo;
use super::comparison::{BenchmarkedProgram, TimingSamples, time_contestants_in_turn};
use super::hook::BenchError;
use super::{
    AtMostOrAtLeastBound, BASELINE_SUFFIX, BenchMeasurementWithGoal, BenchOptions,
    ratio_to_baseline_row,
};
use crate::build::BuildProfile;

const FILES: usize = 300_000;
const FILES_IN_A_FOLDER: usize = 20;
const FOLDERS_IN_A_FOLDER: usize = 50;
/// Age from which the stat cache believes a file's times.
const STAT_CACHE_AGE: Duration = Duration::from_secs(61);
/// Most prompts that warm up the tree cache. A prompt's look is cut after two seconds and keeps
/// what it has learnt, so they suffice for any tree.
const MOST_WARM_UPS: usize = 60;

const CONFIG: &str = r#"
[caps]
tool_calls = 1000000
max_iterations = 1000000
token_budget = 1000000000000
[[verifier]]
name = "tests"
run = "true"
[[verifier]]
name = "lint"
run = "true"
[[verifier]]
name = "types"
run = "true"
[[verifier]]
name = "format"
run = "true"
"#;

/// Runs the bench.
pub(super) fn bench_tree_reading(
    binary: &Path,
    options: &BenchOptions,
) -> Result<Vec<BenchMeasurementWithGoal>, BenchError> {
    let runs = options.runs.min(15);
    let tree = BenchRepoWithManyFiles::new(binary, options.files.unwrap_or(FILES))?;
    // Both programs look at one tree, each with a state folder of its own.
    let program = |binary, state| BenchCheckreinProgram {
        scene: &tree.scene,
        binary,
        state,
        edits: Cell::default(),
    };
    let ours = program(binary, "state");
    let beside = options.beside.as_deref();
    let beside = beside.map(|binary| program(binary, "state-beside"));
    let programs = || [Some(&ours), beside.as_ref()].into_iter().flatten();
    // Younger files would be read again at each look; what is measured is a tree at rest.
    if options.profile != BuildProfile::Dev {
        std::thread::sleep(STAT_CACHE_AGE);
    }
    for program in programs() {
        program.warm_up_tree_cache()?;
    }
    // Answers are checked before and after what is timed: a hook that is quick and wrong must not
    // count.
    let mut unanswered = ours.count_wrong_bench_stop_answers()?;

    let mut contestants = vec![BenchmarkedProgram::new("git status", |_| {
        Ok(tree.git_status_command())
    })];
    for (program, whose) in programs().zip(["", BASELINE_SUFFIX]) {
        let prepared = [
            ("prompt", StepsBeforeTimedBenchHook::Prompt),
            ("stop, nothing changed", StepsBeforeTimedBenchHook::Question),
            ("stop after one edit", StepsBeforeTimedBenchHook::Edit),
        ];
        for (name, steps) in prepared {
            contestants.push(BenchmarkedProgram::new(
                format!("{name}{whose}"),
                move |_| program.prepare_timed_bench_command(steps),
            ));
        }
    }
    let times = time_contestants_in_turn(&mut contestants, runs)?;
    drop(contestants);
    unanswered += ours.count_wrong_bench_stop_answers()?;

    println!(
        "{} files in {} folders, {runs} timed runs each, interleaved\n\n{}",
        tree.files,
        tree.files.div_ceil(FILES_IN_A_FOLDER),
        TimingSamples::bench_times_heading()
    );
    for times in &times {
        println!("{}", times.bench_times_row());
    }
    // In the order in which they were pushed; a stop after which nothing has changed has no goal.
    let [status, prompt, _, stop, ..] = times.as_slice() else {
        return Err("a contestant is missing".to_owned());
    };
    let ratio = |times: &TimingSamples, most: f64| {
        BenchMeasurementWithGoal::new(
            format!("{} / git status, median", times.name),
            times.median_ms() / status.median_ms(),
            AtMostOrAtLeastBound::AtMost(most),
            "x",
        )
    };
    // A wrong answer is a failure of the product on any machine.
    let mut answers = BenchMeasurementWithGoal::new(
        "answers that are not those of the tree",
        unanswered as f64,
        AtMostOrAtLeastBound::AtMost(0.0),
        "answers",
    );
    answers.essential = true;
    let mut targets = vec![ratio(prompt, 1.5), ratio(stop, 3.0), answers];
    for now in [prompt, stop] {
        let name = format!("{}{BASELINE_SUFFIX}", now.name);
        let before = times.iter().find(|times| times.name == name);
        targets.extend(before.and_then(|before| ratio_to_baseline_row(now, before.median_ms())));
    }
    Ok(targets)
}

/// A repository of many files, all of them committed.
struct BenchRepoWithManyFiles {
    scene: BenchRepo,
    files: usize,
}

impl BenchRepoWithManyFiles {
    fn new(binary: &Path, files: usize) -> Result<Self, BenchError> {
        let scene = BenchRepo::new(binary)?;
        scene.write_file("repo/checkrein.toml", CONFIG)?;
        scene.write_file("repo/.gitignore", "*.log\n/target/\nnode_modules\n")?;
        for n in 0..files {
            let folder = n / FILES_IN_A_FOLDER;
            let name = format!("repo/packages/p{}/m{folder}", folder / FOLDERS_IN_A_FOLDER);
            if n % FILES_IN_A_FOLDER == 0 {
                std::fs::create_dir_all(scene.path_in_bench_repo(&name))
                    .map_err(|error| format!("{name}: {error}"))?;
            }
            let text = format!("pub fn f{n}() -> u32 {{\n    {n}\n}}\n");
            scene.write_file(&format!("{name}/f{n}.rs"), &text)?;
        }
        scene.run_git(&["add", "-A"])?;
        scene.run_git(&[
            "-c",
            "user.name=bench",
            "-c",
            "user.email=bench@example.com",
            // git must not repack in the background, beside what is timed.
            "-c",
            "gc.auto=0",
            "-c",
            "maintenance.auto=false",
            "commit",
            "-q",
            "-m",
            "a large tree",
        ])?;
        Ok(Self { scene, files })
    }

    /// Returns `git status` with git's own defaults, whatever this machine's config says.
    fn git_status_command(&self) -> Command {
        let mut command = Command::new("git");
        command
            .args(["status", "--porcelain"])
            .current_dir(self.scene.path_in_bench_repo("repo"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        command
    }
}

/// What is done before the hook that is timed.
#[derive(Clone, Copy)]
enum StepsBeforeTimedBenchHook {
    /// Nothing: the timed hook is a prompt.
    Prompt,
    /// A prompt; the timed hook is its stop.
    Question,
    /// A prompt and an edit of one file; the timed hook is the stop.
    Edit,
}

/// A Checkrein program with a state folder of its own.
struct BenchCheckreinProgram<'t> {
    scene: &'t BenchRepo,
    binary: &'t Path,
    state: &'static str,
    edits: Cell<usize>,
}

impl BenchCheckreinProgram<'_> {
    fn prepare_timed_bench_command(
        &self,
        steps: StepsBeforeTimedBenchHook,
    ) -> Result<Command, BenchError> {
        match steps {
            StepsBeforeTimedBenchHook::Prompt => {
                return self.hook_command_for_bench(&bench_prompt_event());
            }
            StepsBeforeTimedBenchHook::Question => self
                .run_hook_and_parse_answer(&bench_prompt_event())
                .map(|_| ())?,
            StepsBeforeTimedBenchHook::Edit => {
                self.run_hook_and_parse_answer(&bench_prompt_event())?;
                self.edit_bench_repo_file()?;
            }
        }
        self.hook_command_for_bench(&stop_message_for_bench())
    }

    /// Sends prompts until one finds the whole tree in the cache.
    fn warm_up_tree_cache(&self) -> Result<(), BenchError> {
        for _ in 0..MOST_WARM_UPS {
            let began = Instant::now();
            self.run_hook_and_parse_answer(&bench_prompt_event())?;
            let took = began.elapsed();
            self.run_hook_and_parse_answer(&stop_message_for_bench())?;
            // A look that is cut takes the full two seconds (`PROMPT_LIMIT` of the runtime); a
            // shorter one was complete.
            if took < Duration::from_millis(1_900) {
                return Ok(());
            }
        }
        Err(format!(
            "after {MOST_WARM_UPS} prompts the tree is not known yet"
        ))
    }

    /// Returns how many of two answers are wrong: a question must run no check, an edit must.
    fn count_wrong_bench_stop_answers(&self) -> Result<u32, BenchError> {
        self.run_hook_and_parse_answer(&bench_prompt_event())?;
        let question = self.run_hook_and_parse_answer(&stop_message_for_bench())?;
        self.run_hook_and_parse_answer(&bench_prompt_event())?;
        self.edit_bench_repo_file()?;
        let edited = self.run_hook_and_parse_answer(&stop_message_for_bench())?;
        let wrong = |answer: &serde_json::Value, reason: &str, detail: Option<&str>| {
            let told = |key: &str| answer.pointer(&format!("/transition/{key}"));
            let is_right = told("reason").and_then(|told| told.as_str()) == Some(reason)
                && told("detail").and_then(|told| told.as_str()) == detail;
            if !is_right {
                println!("not {reason}: {answer}");
            }
            u32::from(!is_right)
        };
        Ok(wrong(&question, "unverified", Some("no_change"))
            + wrong(&edited, "task_complete", None))
    }

    fn edit_bench_repo_file(&self) -> Result<(), BenchError> {
        let n = self.edits.get();
        self.edits.set(n + 1);
        // Another text each time, or it would be no edit.
        self.scene
            .write_file("repo/packages/p0/m0/f0.rs", &format!("// edit {n}\n"))
    }

    fn hook_command_for_bench(&self, message: &serde_json::Value) -> Result<Command, BenchError> {
        let payload = "payloads/message.json";
        self.scene.write_file(payload, &message.to_string())?;
        let stdin = std::fs::File::open(self.scene.path_in_bench_repo(payload))
            .map_err(|error| format!("{payload}: {error}"))?;
        // The arguments that `init` writes for a stop.
        let arguments = [
            "hook",
            "generic",
            "--source",
            "project",
            "--deadline",
            "660",
        ];
        let mut command = self
            .scene
            .build_bench_checkrein_command(self.binary, self.state);
        command.args(arguments).stdin(stdin);
        Ok(command)
    }

    fn run_hook_and_parse_answer(
        &self,
        message: &serde_json::Value,
    ) -> Result<serde_json::Value, BenchError> {
        let output = self
            .hook_command_for_bench(message)?
            .output()
            .map_err(|error| format!("checkrein hook: {error}"))?;
        let answer = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&answer).map_err(|error| {
            let errors = String::from_utf8_lossy(&output.stderr);
            format!("checkrein hook: {error}: {answer}{errors}")
        })
    }
}

fn bench_prompt_event() -> serde_json::Value {
    serde_json::json!({ "type": "user", "session": "bench", "text": "Mend the first function." })
}

fn stop_message_for_bench() -> serde_json::Value {
    serde_json::json!({ "type": "stop", "session": "bench", "text": "It is mended." })
}
