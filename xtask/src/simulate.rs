//! `simulate`: runs many seeds of the simulation on all processors. A seed that shows a violation
//! is made smaller and told as a story. `--planted`: plants bugs in a copy of the checkout, one at
//! a time; each must be found.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::checkout_copy::CheckoutCopy;

/// Seeds that one process runs. Threads that the simulation kills stay until their process ends, so
/// a process runs only so many.
const BATCH_SIZE: u64 = 100;
/// A planted bug has to be found within this time of running.
const PLANTED_BUG_LIMIT: Duration = Duration::from_secs(120);

struct SimulationOptions {
    seconds: u64,
    seed: u64,
    debug: bool,
    planted: bool,
    story: bool,
    named: Vec<String>,
}

/// Runs the command.
pub(crate) fn run_simulations(arguments: &[String]) -> Result<ExitCode, String> {
    let options = parse_simulate_options(arguments)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("xtask has no parent folder")?;
    if options.planted {
        return simulate_planted_bugs(root, &options);
    }
    let program = compile_simulator(root, &crate::build::cargo_build_folder(root), options.debug)?;
    if options.story {
        print_simulation_story(&program, options.seed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ran = run_simulation_seeds(&program, options.seed, Duration::from_secs(options.seconds))?;
    println!(
        "{} seeds from {} on, {} violations",
        ran.seeds,
        options.seed,
        ran.violations.len()
    );
    for (ending, count) in &ran.endings {
        println!("{count:>9}  {ending}");
    }
    for (seed, what) in &ran.violations {
        println!("seed {seed}: {what}");
    }
    // The first violation is told at once, the others by `--story SEED`.
    let Some(seed) = ran.violations.keys().next() else {
        return Ok(ExitCode::SUCCESS);
    };
    print_simulation_story(&program, *seed)?;
    Ok(ExitCode::FAILURE)
}

fn parse_simulate_options(arguments: &[String]) -> Result<SimulationOptions, String> {
    let mut options = SimulationOptions {
        seconds: 60,
        seed: 1,
        debug: false,
        planted: false,
        story: false,
        named: Vec::new(),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || {
            let next = rest
                .next()
                .ok_or_else(|| format!("{argument} needs a number"))?;
            next.parse().map_err(|_| format!("'{next}' is no number"))
        };
        match argument.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--story" => (options.seed, options.story) = (number()?, true),
            "--debug" => options.debug = true,
            "--planted" => options.planted = true,
            name if options.planted && !name.starts_with('-') => {
                options.named.push(name.to_owned())
            }
            other => {
                return Err(format!(
                    "unknown argument '{other}'; there are --seconds N, --seed N, --story SEED, --debug, --planted [NAME]..."
                ));
            }
        }
    }
    Ok(options)
}

fn compile_simulator(tree: &Path, target: &Path, debug: bool) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "checkrein-simulation"]);
    if !debug {
        build.arg("--release");
    }
    build.current_dir(tree).env("CARGO_TARGET_DIR", target);
    let status = build.status().map_err(|error| format!("cargo: {error}"))?;
    let profile = if debug { "debug" } else { "release" };
    match status.success() {
        true => Ok(target.join(profile).join("checkrein-simulation")),
        false => Err("the simulation does not build".to_owned()),
    }
}

fn print_simulation_story(program: &Path, seed: u64) -> Result<(), String> {
    let told = Command::new(program)
        .args(["story", &seed.to_string()])
        .status()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    match told.success() {
        true => Ok(()),
        false => Err(format!("seed {seed} has no story")),
    }
}

/// Totals over many seeds.
#[derive(Default)]
struct SimulationTotals {
    seeds: u64,
    endings: BTreeMap<String, u64>,
    /// The first violation of each seed that has one.
    violations: BTreeMap<u64, String>,
}

impl SimulationTotals {
    fn merge_simulation_results(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.violations.extend(other.violations);
        for (ending, count) in other.endings {
            *self.endings.entry(ending).or_default() += count;
        }
    }
}

/// Runs seeds on all processors until the time is over or a worker finds a violation.
fn run_simulation_seeds(
    program: &Path,
    from: u64,
    time: Duration,
) -> Result<SimulationTotals, String> {
    let until = Instant::now() + time;
    // A common counter, so that no seed is run twice, however long a batch takes.
    let next = AtomicU64::new(from);
    // One violation is enough, whichever worker finds it.
    let found = AtomicBool::new(false);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let is_over = || found.load(Ordering::Relaxed) || Instant::now() >= until;
    let work = || {
        let mut ran = SimulationTotals::default();
        while !is_over() {
            let batch = next.fetch_add(BATCH_SIZE, Ordering::Relaxed);
            ran.merge_simulation_results(run_seed_batch(program, batch, &is_over)?);
            if !ran.violations.is_empty() {
                found.store(true, Ordering::Relaxed);
            }
        }
        Ok::<SimulationTotals, String>(ran)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let mut all = SimulationTotals::default();
        for worker in workers {
            all.merge_simulation_results(worker.join().map_err(|_| "a worker panicked")??);
        }
        Ok(all)
    })
}

fn run_seed_batch(
    program: &Path,
    from: u64,
    is_over: &dyn Fn() -> bool,
) -> Result<SimulationTotals, String> {
    let said = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut child = Command::new(program)
        .args(["run", &from.to_string(), &BATCH_SIZE.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(said)?;
    let mut ran = SimulationTotals::default();
    let output = child.stdout.take().ok_or("a worker has no output")?;
    // The seed that is running: a crash has no line of its own.
    let mut running = from;
    for line in BufReader::new(output).lines() {
        let line = line.map_err(said)?;
        let mut parts = line.splitn(3, '\t');
        let seed = parts.next().and_then(|seed| seed.parse().ok());
        running = seed.unwrap_or(running);
        match (parts.next(), parts.next()) {
            (Some("ended"), Some(how)) => *ran.endings.entry(how.to_owned()).or_default() += 1,
            (Some("violation"), Some(what)) => {
                ran.violations
                    .entry(running)
                    .or_insert_with(|| what.to_owned());
            }
            // The line `done`, which ends a seed.
            _ => {
                ran.seeds += 1;
                running += 1;
            }
        }
        // The rest of the batch does not matter: one violation is enough, or the time is over.
        if !ran.violations.is_empty() || is_over() {
            kill_and_reap_child(&mut child);
            return Ok(ran);
        }
    }
    let status = child.wait().map_err(said)?;
    if !status.success() {
        ran.violations
            .insert(running, format!("the simulation ends with {status}"));
    }
    Ok(ran)
}

fn kill_and_reap_child(child: &mut Child) {
    // The process may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

fn simulate_planted_bugs(root: &Path, options: &SimulationOptions) -> Result<ExitCode, String> {
    let copy = CheckoutCopy::create_checkout_copy(root, "simulation")?;
    let folder = root.join("crates/simulation/planted");
    let entries =
        std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut patches: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    patches.retain(|path| path.extension().is_some_and(|end| end == "patch"));
    patches.sort();
    let mut all = true;
    for patch in patches {
        let name = patch
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if !options.named.is_empty() && !options.named.contains(&name) {
            continue;
        }
        let text = std::fs::read_to_string(&patch).map_err(|error| format!("{name}: {error}"))?;
        let found = match copy.apply_patch_to_copy(&text)? {
            Err(why) => Err(format!("DOES NOT APPLY: {why}")),
            Ok(()) => find_planted_bug_by_simulation(&copy, options.debug),
        };
        // Whatever the outcome: the copy is used for the next bug.
        copy.revert_patch(&text)?;
        match found {
            Ok(found) => println!("{name}: {found}"),
            Err(why) => {
                println!("{name}: {why}");
                all = false;
            }
        }
    }
    Ok(if all {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn find_planted_bug_by_simulation(copy: &CheckoutCopy, debug: bool) -> Result<String, String> {
    let program = compile_simulator(
        copy.checkout_copy_root(),
        copy.cargo_target_of_copy(),
        debug,
    )?;
    let began = Instant::now();
    let ran = run_simulation_seeds(&program, 1, PLANTED_BUG_LIMIT)?;
    let took = began.elapsed().as_secs();
    let Some((seed, what)) = ran.violations.iter().next() else {
        return Err(format!("NOT FOUND in {} seeds, {took} s", ran.seeds));
    };
    print_simulation_story(&program, *seed)?;
    Ok(format!("found after {took} s, seed {seed}: {what}"))
}
