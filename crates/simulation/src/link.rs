//! Simulates the connection between a hook and its owner (its worker process).

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use checkrein_runtime::{WorkerLinkReadOutcome, WorkerTransport, WorkerTransportWriter};

use crate::scheduler::SimulatedProcessId;
use crate::simulated_machine::SimulatedOperatingSystem;

/// How long one read waits for a line.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// One direction of the connection.
#[derive(Debug, Default)]
struct SimulatedLineQueue {
    waiting: VecDeque<Vec<u8>>,
    closed: bool,
}

fn lock_simulated_line_queue(
    lines: &Mutex<SimulatedLineQueue>,
) -> MutexGuard<'_, SimulatedLineQueue> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end of the connection. It is closed when it is dropped or its process is killed.
pub(crate) struct SimulatedHookWorkerLinkEnd {
    machine: Arc<SimulatedOperatingSystem>,
    peer: SimulatedProcessId,
    from: Arc<Mutex<SimulatedLineQueue>>,
    to: Arc<Mutex<SimulatedLineQueue>>,
}

/// Returns the ends of a connection for the first and the second process.
pub(crate) fn simulated_link_pair(
    world: &Arc<SimulatedOperatingSystem>,
    first: SimulatedProcessId,
    second: SimulatedProcessId,
) -> (SimulatedHookWorkerLinkEnd, SimulatedHookWorkerLinkEnd) {
    let (there, back) = (Arc::default(), Arc::default());
    let end = |peer, from: &Arc<Mutex<SimulatedLineQueue>>, to: &Arc<Mutex<SimulatedLineQueue>>| {
        SimulatedHookWorkerLinkEnd {
            machine: Arc::clone(world),
            peer,
            from: Arc::clone(from),
            to: Arc::clone(to),
        }
    };
    (end(second, &back, &there), end(first, &there, &back))
}

impl WorkerTransport for SimulatedHookWorkerLinkEnd {
    fn receive_line_from_worker_link(&mut self) -> WorkerLinkReadOutcome {
        // Lines before the end: what a peer sent before it died is still delivered.
        for is_last in [false, true] {
            if let Some(line) = lock_simulated_line_queue(&self.from).waiting.pop_front() {
                return WorkerLinkReadOutcome::Line(line);
            }
            if lock_simulated_line_queue(&self.from).closed
                || self.machine.scheduler.is_killed(self.peer)
            {
                return WorkerLinkReadOutcome::End;
            }
            if !is_last {
                self.machine.scheduler.sleep_simulated_thread(POLL_INTERVAL);
            }
        }
        WorkerLinkReadOutcome::Nothing
    }

    fn worker_link_writer(&self) -> io::Result<Box<dyn WorkerTransportWriter>> {
        Ok(Box::new(SimulatedWorkerLinkWriter {
            world: Arc::clone(&self.machine),
            peer: self.peer,
            from: Arc::clone(&self.from),
            to: Arc::clone(&self.to),
        }))
    }
}

impl Drop for SimulatedHookWorkerLinkEnd {
    fn drop(&mut self) {
        lock_simulated_line_queue(&self.to).closed = true;
        lock_simulated_line_queue(&self.from).closed = true;
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
        // Sending takes time, in which the peer may be killed; so its state is checked afterwards.
        self.world
            .scheduler
            .spend_virtual_time(Duration::from_micros(20));
        // A killed thread never runs `drop`, so the scheduler has to be asked as well.
        if lock_simulated_line_queue(&self.from).closed || self.world.scheduler.is_killed(self.peer)
        {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        lock_simulated_line_queue(&self.to)
            .waiting
            .push_back(line.to_vec());
        Ok(())
    }
}
