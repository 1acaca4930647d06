//! What one hook pays for the store: open, tail read, one append, close, in a process
//! of its own. `cargo run --release -p checkrein-store --example cold` prints medians.

#![expect(clippy::print_stdout, reason = "a measurement is there to be printed")]

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_store::{AppendBatch, NewEvent, SqliteStore, Store, StoreError};

const HOOKS: usize = 400;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = env::args().skip(1);
    if let (Some(folder), Some(durable)) = (args.next(), args.next()) {
        let began = Instant::now();
        hook(Path::new(&folder), durable == "durable")?;
        println!("{}", began.elapsed().as_nanos());
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("store");
    report("first event", &[run(&store, "normal")?]);
    for (what, durable, filled) in [
        ("tool event", "normal", 0),
        ("tool event, after 10,000", "normal", 10_000),
        ("stop, synced", "durable", 0),
    ] {
        fill(&store, filled)?;
        let times: Result<Vec<_>, _> = (0..HOOKS).map(|_| run(&store, durable)).collect();
        report(what, &times?);
    }
    let mut times = Vec::new();
    for _ in 0..HOOKS / 8 {
        // Eight hooks of one session at once.
        let eight: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| run(&store, "normal").ok()))
                .collect();
            runs.into_iter()
                .filter_map(|run| run.join().ok().flatten())
                .collect()
        });
        times.extend(eight);
    }
    report("tool event, eight at once", &times);
    Ok(())
}

fn hook(folder: &Path, durable: bool) -> Result<(), StoreError> {
    let store = SqliteStore::open_store_in_folder(folder)?;
    append(&store, durable)
}

fn append(store: &SqliteStore, durable: bool) -> Result<(), StoreError> {
    store.transact_on_session(&SessionId::from("session"), &mut |tail| {
        let after = tail
            .newest_state_cache()?
            .map_or(EventSeq(0), |(seq, _)| seq);
        let recent = EventSeq(after.0.max(tail.last_seq().0.saturating_sub(64)));
        let folded = tail.events_after(recent)?.len();
        let event = |kind: &'static str, key| NewEvent {
            kind,
            payload: vec![b'x'; 900],
            key,
        };
        let key = Some(format!("toolu_{}", tail.last_seq().0));
        let events = vec![event("tool_requested", key), event("decision_made", None)];
        assert!(folded <= 64);
        Ok(Some(AppendBatch {
            events,
            durable,
            ..AppendBatch::default()
        }))
    })?;
    Ok(())
}

fn fill(folder: &Path, events: usize) -> Result<(), StoreError> {
    let store = SqliteStore::open_store_in_folder(folder)?;
    (0..events / 2).try_for_each(|_| append(&store, false))
}

/// Time inside the process, and of the process.
fn run(folder: &Path, durable: &str) -> Result<(Duration, Duration), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let child = Command::new(env::current_exe()?)
        .arg(folder)
        .arg(durable)
        .output()?;
    let whole = began.elapsed();
    let inside = String::from_utf8(child.stdout)?.trim().parse()?;
    Ok((Duration::from_nanos(inside), whole))
}

fn report(what: &str, times: &[(Duration, Duration)]) {
    let at = |pick: fn(&(Duration, Duration)) -> Duration, permille: usize| {
        let mut sorted: Vec<_> = times.iter().map(pick).collect();
        sorted.sort_unstable();
        let index = (sorted.len() * permille / 1000).min(sorted.len().saturating_sub(1));
        sorted.get(index).copied().unwrap_or_default().as_secs_f64() * 1e3
    };
    let (inside, whole) = (
        |t: &(Duration, Duration)| t.0,
        |t: &(Duration, Duration)| t.1,
    );
    println!(
        "{what:26} store {:.2} ms (p99 {:.2}), process {:.2} ms (p99 {:.2})",
        at(inside, 500),
        at(inside, 990),
        at(whole, 500),
        at(whole, 990)
    );
}
