//! Times processes against each other in turn. A busy machine is then busy for all of them, and the
//! order changes every round, so that none always finds the caches as the same neighbour left them.
//! What is timed is the whole process, from spawn to the end of the wait.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::hook::BenchError;

/// Prepares the `n`-th command of a contestant; not timed.
pub(crate) type NthBenchCommandFn<'a> = Box<dyn FnMut(usize) -> Result<Command, BenchError> + 'a>;
/// Runs after each timed run; not timed.
pub(crate) type BetweenTimedRunsFn<'a> = Box<dyn FnMut(usize) -> Result<(), BenchError> + 'a>;

/// One of the programs that are compared.
pub(crate) struct BenchmarkedProgram<'a> {
    pub(crate) name: String,
    pub(crate) prepare: NthBenchCommandFn<'a>,
    pub(crate) after: BetweenTimedRunsFn<'a>,
    /// Accepts any exit status: `execpolicy check` and similar programs report their verdict by it.
    pub(crate) any_exit: bool,
}

impl<'a> BenchmarkedProgram<'a> {
    pub(crate) fn new(
        name: impl Into<String>,
        prepare: impl FnMut(usize) -> Result<Command, BenchError> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            prepare: Box::new(prepare),
            after: Box::new(|_| Ok(())),
            any_exit: false,
        }
    }

    pub(crate) fn with_action_after_bench_run(
        mut self,
        after: impl FnMut(usize) -> Result<(), BenchError> + 'a,
    ) -> Self {
        self.after = Box::new(after);
        self
    }

    pub(crate) fn with_any_exit_code_allowed(mut self) -> Self {
        self.any_exit = true;
        self
    }
}

/// The times of one contestant.
#[derive(Clone, Default)]
pub(crate) struct TimingSamples {
    pub(crate) name: String,
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl TimingSamples {
    pub(crate) fn samples_from_wall_times(name: impl Into<String>, wall: Vec<Duration>) -> Self {
        Self {
            name: name.into(),
            wall,
            cpu: Vec::new(),
        }
    }

    /// Returns the median wall time in milliseconds.
    pub(crate) fn median_ms(&self) -> f64 {
        percentile_ms(&self.wall, 500)
    }

    pub(crate) fn p99_ms(&self) -> f64 {
        percentile_ms(&self.wall, 990)
    }

    pub(crate) fn median_cpu_ms(&self) -> f64 {
        percentile_ms(&self.cpu, 500)
    }

    pub(crate) fn bench_times_heading() -> String {
        format!(
            "{:<52} {:>10} {:>10} {:>10} {:>10}",
            "milliseconds", "median", "p99", "least", "cpu median"
        )
    }

    pub(crate) fn bench_times_row(&self) -> String {
        let cpu = if self.cpu.is_empty() {
            "-".to_owned()
        } else {
            format!("{:.2}", self.median_cpu_ms())
        };
        format!(
            "{:<52} {:>10.2} {:>10.2} {:>10.2} {cpu:>10}",
            self.name,
            self.median_ms(),
            self.p99_ms(),
            percentile_ms(&self.wall, 0)
        )
    }
}

fn percentile_ms(times: &[Duration], permille: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    // No interpolation: every figure that is printed was measured.
    let index = (sorted.len() * permille / 1000).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default().as_secs_f64() * 1e3
}

/// Runs the contestants in turn, `runs` times each after a round that is not counted.
pub(crate) fn time_contestants_in_turn(
    contestants: &mut [BenchmarkedProgram<'_>],
    runs: usize,
) -> Result<Vec<TimingSamples>, BenchError> {
    let mut all: Vec<TimingSamples> = contestants
        .iter()
        .map(|contestant| TimingSamples {
            name: contestant.name.clone(),
            ..TimingSamples::default()
        })
        .collect();
    let mut order: Vec<usize> = (0..contestants.len()).collect();
    let mut dice = 0x9e37_79b9_u64;
    // Round 0 fills the caches and is not counted.
    for run in 0..=runs {
        shuffle_contestant_order(&mut order, &mut dice);
        for at in &order {
            let (Some(contestant), Some(times)) = (contestants.get_mut(*at), all.get_mut(*at))
            else {
                continue;
            };
            let mut command = (contestant.prepare)(run)?;
            let (wall, cpu, ok) = run_and_time_process(&mut command)
                .map_err(|error| format!("{}: {error}", contestant.name))?;
            if !ok && !contestant.any_exit {
                return Err(format!("{}: ended with an error", contestant.name));
            }
            // After the first round too: the next command may build on what this leaves, as a tool
            // call builds on the result of the one before.
            (contestant.after)(run)?;
            if run > 0 {
                times.wall.push(wall);
                times.cpu.extend(cpu);
            }
        }
    }
    Ok(all)
}

/// Shuffles in place. The generator starts from a fixed number, so every bench uses the same
/// orders.
fn shuffle_contestant_order(order: &mut [usize], dice: &mut u64) {
    for last in (1..order.len()).rev() {
        // Knuth's MMIX generator. Only its high bits are used, since the low ones have short
        // periods.
        *dice = dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let pick = (*dice >> 33) as usize % (last + 1);
        order.swap(last, pick);
    }
}

/// Runs one process. Returns its wall time, its processor time where the system tells it, and
/// whether it succeeded.
pub(crate) fn run_and_time_process(
    command: &mut Command,
) -> std::io::Result<(Duration, Option<Duration>, bool)> {
    // Nobody reads the output: reading would be part of the time.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let cpu = children_cpu_time();
    let began = Instant::now();
    let mut child = command.spawn()?;
    let status = child.wait()?;
    let wall = began.elapsed();
    let used = children_cpu_time()
        .zip(cpu)
        .and_then(|(after, before)| after.checked_sub(before));
    Ok((wall, used, status.success()))
}

/// Returns the processor time of all children waited for so far. The difference of two readings
/// belongs to one child only if no other was waited for in between.
#[cfg(unix)]
fn children_cpu_time() -> Option<Duration> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let micros = |time: nix::sys::time::TimeVal| {
        let micros = time
            .tv_sec()
            .saturating_mul(1_000_000)
            .saturating_add(time.tv_usec());
        u64::try_from(micros).unwrap_or(0)
    };
    Some(Duration::from_micros(
        micros(usage.user_time()) + micros(usage.system_time()),
    ))
}

#[cfg(not(unix))]
fn children_cpu_time() -> Option<Duration> {
    None
}
