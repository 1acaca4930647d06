//! `bench witness`: what a veto check and a verify-and-retry round cost themselves, beside shipit_agent and
//! pydantic-ai where a Python has them (`PYTHON_BIN`); models that answer at once, processor time of each
//! process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::hook::Failure;
use super::{Bound, Options, Profile, Target};
use crate::build::cargo;

const SHIPIT: &str = include_str!("peers/shipit.py");
const VERIFY_LOOP: &str = include_str!("peers/verify_loop.py");

/// Nanoseconds by name.
type Costs = BTreeMap<String, f64>;

/// The bench.
pub(super) fn run(options: &Options) -> Result<Vec<Target>, Failure> {
    let ours = costs("ours", &mut bench(options.profile))?;
    let veto = of(&ours, "veto check, 6 messages")?;
    let round = round(&ours)?;
    let mut targets = vec![
        Target::new("veto check", veto / 1e3, Bound::AtMost(1.0), "µs"),
        Target::new("verify round", round / 1e3, Bound::AtMost(50.0), "µs"),
    ];
    let python = std::env::var_os("PYTHON_BIN").map_or_else(|| "python3".into(), PathBuf::from);
    let peer = |script: &str| {
        let mut command = Command::new(&python);
        command.args(["-c", script]);
        command
    };
    match costs("shipit_agent", &mut peer(SHIPIT)) {
        Ok(theirs) => {
            for (what, least) in [
                ("veto check, no history", 8.0),
                ("veto check, 6 messages", 8.0),
                ("progress check, 6 messages", 0.0),
            ] {
                let ratio = of(&theirs, what)? / of(&ours, what)?;
                let name = format!("shipit_agent / ours, {what}");
                targets.push(Target::new(name, ratio, Bound::AtLeast(least), "x"));
            }
        }
        Err(why) => println!("\nshipit_agent is not compared: {why}"),
    }
    match costs("pydantic-ai", &mut peer(VERIFY_LOOP)) {
        Ok(theirs) => targets.push(Target::new(
            "pydantic-ai / ours, verify round",
            self::round(&theirs)? / round,
            Bound::AtLeast(50.0),
            "x",
        )),
        Err(why) => println!("\npydantic-ai is not compared: {why}"),
    }
    Ok(targets)
}

/// One failing round, agent included.
fn round(costs: &Costs) -> Result<f64, Failure> {
    let of = |rounds| of(costs, &format!("verification, {rounds} failing rounds"));
    Ok((of(3)? - of(0)?) / 3.0)
}

fn of(costs: &Costs, name: &str) -> Result<f64, Failure> {
    let cost = costs.get(name).copied();
    cost.ok_or_else(|| format!("'{name}' was not measured"))
}

fn bench(profile: Profile) -> Command {
    let profile = if profile == Profile::Dev {
        "dev"
    } else {
        "dist"
    };
    let mut command = cargo();
    command.args(["bench", "--quiet", "--package", "checkrein", "--bench"]);
    command.args(["witness", "--profile", profile]);
    command
}

/// What a program prints: `NAME: N ns`, and lines that say what it is.
fn costs(who: &str, command: &mut Command) -> Result<Costs, Failure> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot be run: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().last().unwrap_or_default();
        return Err(format!("{}: {last}", output.status));
    }
    println!("\n{who}");
    let mut costs = Costs::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        println!("  {line}");
        let cost = line
            .rsplit_once(": ")
            .and_then(|(name, rest)| Some((name, rest.strip_suffix(" ns")?.parse().ok()?)));
        if let Some((name, cost)) = cost {
            costs.insert(name.to_owned(), cost);
        }
    }
    Ok(costs)
}
