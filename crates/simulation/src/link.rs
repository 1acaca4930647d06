//! The connection between a simulated hook and its owner.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use checkrein_runtime::{ReceivedLine, WorkerTransport, WorkerTransportWriter};

use crate::scheduler::Process;
use crate::world::World;

/// How long a reader waits at a time.
const TICK: Duration = Duration::from_millis(50);

/// One direction.
#[derive(Debug, Default)]
struct Lines {
    waiting: VecDeque<Vec<u8>>,
    closed: bool,
}

fn lock(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end. It is closed when it is dropped, or its process is killed.
pub(crate) struct SimulatedEnd {
    world: Arc<World>,
    peer: Process,
    from: Arc<Mutex<Lines>>,
    to: Arc<Mutex<Lines>>,
}

/// The ends of a connection: of the first process, and of the second.
pub(crate) fn pair(
    world: &Arc<World>,
    first: Process,
    second: Process,
) -> (SimulatedEnd, SimulatedEnd) {
    let (there, back) = (Arc::default(), Arc::default());
    let end = |peer, from: &Arc<Mutex<Lines>>, to: &Arc<Mutex<Lines>>| SimulatedEnd {
        world: Arc::clone(world),
        peer,
        from: Arc::clone(from),
        to: Arc::clone(to),
    };
    (end(second, &back, &there), end(first, &there, &back))
}

impl WorkerTransport for SimulatedEnd {
    fn receive_line_from_worker_link(&mut self) -> ReceivedLine {
        for is_last in [false, true] {
            if let Some(line) = lock(&self.from).waiting.pop_front() {
                return ReceivedLine::Line(line);
            }
            if lock(&self.from).closed || self.world.scheduler.is_killed(self.peer) {
                return ReceivedLine::End;
            }
            if !is_last {
                self.world.scheduler.sleep(TICK);
            }
        }
        ReceivedLine::Nothing
    }

    fn writer(&self) -> io::Result<Box<dyn WorkerTransportWriter>> {
        Ok(Box::new(Writer {
            world: Arc::clone(&self.world),
            peer: self.peer,
            from: Arc::clone(&self.from),
            to: Arc::clone(&self.to),
        }))
    }
}

impl Drop for SimulatedEnd {
    fn drop(&mut self) {
        lock(&self.to).closed = true;
        lock(&self.from).closed = true;
    }
}

struct Writer {
    world: Arc<World>,
    peer: Process,
    from: Arc<Mutex<Lines>>,
    to: Arc<Mutex<Lines>>,
}

impl WorkerTransportWriter for Writer {
    fn send_worker_link_line(&self, line: &[u8]) -> io::Result<()> {
        self.world.scheduler.did(Duration::from_micros(20));
        if lock(&self.from).closed || self.world.scheduler.is_killed(self.peer) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        lock(&self.to).waiting.push_back(line.to_vec());
        Ok(())
    }
}
