//! The connection between a simulated hook and its owner.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use checkrein_runtime::{ReceivedLine, WorkerTransport, WorkerTransportWriter};

use crate::scheduler::SimulatedProcessId;
use crate::simulated_machine::SimulatedOperatingSystem;

/// How long a reader waits at a time.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// One direction.
#[derive(Debug, Default)]
struct SimulatedLineQueue {
    waiting: VecDeque<Vec<u8>>,
    closed: bool,
}

fn lock_unpoisoned(lines: &Mutex<SimulatedLineQueue>) -> MutexGuard<'_, SimulatedLineQueue> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end. It is closed when it is dropped, or its process is killed.
pub(crate) struct SimulatedWorkerLinkEnd {
    machine: Arc<SimulatedOperatingSystem>,
    peer: SimulatedProcessId,
    from: Arc<Mutex<SimulatedLineQueue>>,
    to: Arc<Mutex<SimulatedLineQueue>>,
}

/// The ends of a connection: of the first process, and of the second.
pub(crate) fn simulated_link_pair(
    world: &Arc<SimulatedOperatingSystem>,
    first: SimulatedProcessId,
    second: SimulatedProcessId,
) -> (SimulatedWorkerLinkEnd, SimulatedWorkerLinkEnd) {
    let (there, back) = (Arc::default(), Arc::default());
    let end = |peer, from: &Arc<Mutex<SimulatedLineQueue>>, to: &Arc<Mutex<SimulatedLineQueue>>| {
        SimulatedWorkerLinkEnd {
            machine: Arc::clone(world),
            peer,
            from: Arc::clone(from),
            to: Arc::clone(to),
        }
    };
    (end(second, &back, &there), end(first, &there, &back))
}

impl WorkerTransport for SimulatedWorkerLinkEnd {
    fn receive_line_from_worker_link(&mut self) -> ReceivedLine {
        for is_last in [false, true] {
            if let Some(line) = lock_unpoisoned(&self.from).waiting.pop_front() {
                return ReceivedLine::Line(line);
            }
            if lock_unpoisoned(&self.from).closed || self.machine.scheduler.is_killed(self.peer) {
                return ReceivedLine::End;
            }
            if !is_last {
                self.machine.scheduler.sleep_simulated_thread(POLL_INTERVAL);
            }
        }
        ReceivedLine::Nothing
    }

    fn writer(&self) -> io::Result<Box<dyn WorkerTransportWriter>> {
        Ok(Box::new(SimulatedWorkerLinkWriter {
            world: Arc::clone(&self.machine),
            peer: self.peer,
            from: Arc::clone(&self.from),
            to: Arc::clone(&self.to),
        }))
    }
}

impl Drop for SimulatedWorkerLinkEnd {
    fn drop(&mut self) {
        lock_unpoisoned(&self.to).closed = true;
        lock_unpoisoned(&self.from).closed = true;
    }
}

struct SimulatedWorkerLinkWriter {
    world: Arc<SimulatedOperatingSystem>,
    peer: SimulatedProcessId,
    from: Arc<Mutex<SimulatedLineQueue>>,
    to: Arc<Mutex<SimulatedLineQueue>>,
}

impl WorkerTransportWriter for SimulatedWorkerLinkWriter {
    fn send_worker_link_line(&self, line: &[u8]) -> io::Result<()> {
        self.world
            .scheduler
            .spend_virtual_time(Duration::from_micros(20));
        if lock_unpoisoned(&self.from).closed || self.world.scheduler.is_killed(self.peer) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        lock_unpoisoned(&self.to).waiting.push_back(line.to_vec());
        Ok(())
    }
}
