//! `bench tree`: what a prompt and a stop cost in a tree of many files, beside `git status` of the same
//! tree.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::contest::{Contestant, Times, interleave};
use super::hook::Failure;
use super::scene::Scene;
use super::{BEFORE, Bound, Options, Target, no_slower};
use crate::build::Profile;

const FILES: usize = 300_000;
const FILES_IN_A_FOLDER: usize = 20;
const FOLDERS_IN_A_FOLDER: usize = 50;
/// After so long the stat cache believes a file's times.
const AT_REST: Duration = Duration::from_secs(61);
/// Prompts are cut after two seconds and keep what they have learnt: so many are enough for any tree.
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

/// The bench.
pub(super) fn run(binary: &Path, options: &Options) -> Result<Vec<Target>, Failure> {
    let runs = options.runs.min(15);
    let tree = Tree::new(binary, options.files.unwrap_or(FILES))?;
    let program = |binary, state| Program {
        scene: &tree.scene,
        binary,
        state,
        edits: Cell::default(),
    };
    let ours = program(binary, "state");
    let beside = options.beside.as_deref();
    let beside = beside.map(|binary| program(binary, "state-beside"));
    let programs = || [Some(&ours), beside.as_ref()].into_iter().flatten();
    if options.profile != Profile::Dev {
        std::thread::sleep(AT_REST);
    }
    for program in programs() {
        program.warm_up()?;
    }
    let mut unanswered = ours.wrong_answers()?;

    let mut contestants = vec![Contestant::new("git status", |_| Ok(tree.git_status()))];
    for (program, whose) in programs().zip(["", BEFORE]) {
        let prepared = [
            ("prompt", Steps::Prompt),
            ("stop, nothing changed", Steps::Question),
            ("stop after one edit", Steps::Edit),
        ];
        for (name, steps) in prepared {
            contestants.push(Contestant::new(format!("{name}{whose}"), move |_| {
                program.timed(steps)
            }));
        }
    }
    let times = interleave(&mut contestants, runs)?;
    drop(contestants);
    unanswered += ours.wrong_answers()?;

    println!(
        "{} files in {} folders, {runs} timed runs each, interleaved\n\n{}",
        tree.files,
        tree.files.div_ceil(FILES_IN_A_FOLDER),
        Times::heading()
    );
    for times in &times {
        println!("{}", times.line());
    }
    let [status, prompt, _, stop, ..] = times.as_slice() else {
        return Err("a contestant is missing".to_owned());
    };
    let ratio = |times: &Times, most: f64| {
        Target::new(
            format!("{} / git status, median", times.name),
            times.median() / status.median(),
            Bound::AtMost(most),
            "x",
        )
    };
    let mut answers = Target::new(
        "answers that are not those of the tree",
        unanswered as f64,
        Bound::AtMost(0.0),
        "answers",
    );
    answers.essential = true;
    let mut targets = vec![ratio(prompt, 1.5), ratio(stop, 3.0), answers];
    for now in [prompt, stop] {
        let name = format!("{}{BEFORE}", now.name);
        let before = times.iter().find(|times| times.name == name);
        targets.extend(before.and_then(|before| no_slower(now, before.median())));
    }
    Ok(targets)
}

/// A repository of many files.
struct Tree {
    scene: Scene,
    files: usize,
}

impl Tree {
    fn new(binary: &Path, files: usize) -> Result<Self, Failure> {
        let scene = Scene::new(binary)?;
        scene.write("repo/checkrein.toml", CONFIG)?;
        scene.write("repo/.gitignore", "*.log\n/target/\nnode_modules\n")?;
        for n in 0..files {
            let folder = n / FILES_IN_A_FOLDER;
            let name = format!("repo/packages/p{}/m{folder}", folder / FOLDERS_IN_A_FOLDER);
            if n % FILES_IN_A_FOLDER == 0 {
                std::fs::create_dir_all(scene.path(&name))
                    .map_err(|error| format!("{name}: {error}"))?;
            }
            let text = format!("pub fn f{n}() -> u32 {{\n    {n}\n}}\n");
            scene.write(&format!("{name}/f{n}.rs"), &text)?;
        }
        scene.git(&["add", "-A"])?;
        scene.git(&[
            "-c",
            "user.name=bench",
            "-c",
            "user.email=bench@example.com",
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

    /// With git's own defaults, whatever those of this machine are.
    fn git_status(&self) -> Command {
        let mut command = Command::new("git");
        command
            .args(["status", "--porcelain"])
            .current_dir(self.scene.path("repo"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        command
    }
}

/// What is done before the hook that is timed.
#[derive(Clone, Copy)]
enum Steps {
    /// Nothing: it is a prompt.
    Prompt,
    /// A prompt; then it is a stop.
    Question,
    /// A prompt and an edit of one file; then it is a stop.
    Edit,
}

/// A checkrein with a state folder of its own.
struct Program<'t> {
    scene: &'t Scene,
    binary: &'t Path,
    state: &'static str,
    edits: Cell<usize>,
}

impl Program<'_> {
    fn timed(&self, steps: Steps) -> Result<Command, Failure> {
        match steps {
            Steps::Prompt => return self.hook(&prompt()),
            Steps::Question => self.answer(&prompt()).map(|_| ())?,
            Steps::Edit => {
                self.answer(&prompt())?;
                self.edit()?;
            }
        }
        self.hook(&stop())
    }

    /// Until a prompt finds the tree known.
    fn warm_up(&self) -> Result<(), Failure> {
        for _ in 0..MOST_WARM_UPS {
            let began = Instant::now();
            self.answer(&prompt())?;
            let took = began.elapsed();
            self.answer(&stop())?;
            if took < Duration::from_millis(1_900) {
                return Ok(());
            }
        }
        Err(format!(
            "after {MOST_WARM_UPS} prompts the tree is not known yet"
        ))
    }

    /// How many of two answers are others than they should be: a question runs no check, an edit does.
    fn wrong_answers(&self) -> Result<u32, Failure> {
        self.answer(&prompt())?;
        let question = self.answer(&stop())?;
        self.answer(&prompt())?;
        self.edit()?;
        let edited = self.answer(&stop())?;
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

    fn edit(&self) -> Result<(), Failure> {
        let n = self.edits.get();
        self.edits.set(n + 1);
        self.scene
            .write("repo/packages/p0/m0/f0.rs", &format!("// edit {n}\n"))
    }

    fn hook(&self, message: &serde_json::Value) -> Result<Command, Failure> {
        let payload = "payloads/message.json";
        self.scene.write(payload, &message.to_string())?;
        let stdin = std::fs::File::open(self.scene.path(payload))
            .map_err(|error| format!("{payload}: {error}"))?;
        // As `init` writes it for a stop.
        let arguments = [
            "hook",
            "generic",
            "--source",
            "project",
            "--deadline",
            "660",
        ];
        let mut command = self.scene.program(self.binary, self.state);
        command.args(arguments).stdin(stdin);
        Ok(command)
    }

    fn answer(&self, message: &serde_json::Value) -> Result<serde_json::Value, Failure> {
        let output = self
            .hook(message)?
            .output()
            .map_err(|error| format!("checkrein hook: {error}"))?;
        let answer = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&answer).map_err(|error| {
            let errors = String::from_utf8_lossy(&output.stderr);
            format!("checkrein hook: {error}: {answer}{errors}")
        })
    }
}

fn prompt() -> serde_json::Value {
    serde_json::json!({ "type": "user", "session": "bench", "text": "Mend the first function." })
}

fn stop() -> serde_json::Value {
    serde_json::json!({ "type": "stop", "session": "bench", "text": "It is mended." })
}
