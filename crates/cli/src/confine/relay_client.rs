//! Implements the hook inside of a confinement: it judges nothing, but sends the agent's message to
//! the relay outside and returns the answer. It finds the relay by the place of the socket, which
//! nobody inside can write.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use checkrein_adapters::HookReply;
use serde::{Deserialize, Serialize};

use super::INSIDE_FOLDER;

/// The socket's name, in the relay's folder.
pub(super) const SOCKET_NAME: &str = "hook.sock";
/// Longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 4 * 1024 * 1024;
/// Prefixes of the variables that adapters ask for.
const PASSED_PREFIXES: &[&str] = &["CLAUDE_"];

/// The header before the agent's own message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SandboxRelayRequestHeader {
    /// The arguments of `checkrein hook`, the agent's name first.
    pub(super) arguments: Vec<String>,
    /// Variables of the hook's environment that adapters may read.
    pub(super) env: Vec<(String, String)>,
}

/// The header of an answer, with the sizes of what follows it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RelayReplyHeader {
    pub(super) exit_code: u8,
    pub(super) stdout: usize,
    pub(super) stderr: usize,
}

/// The connection to the relay outside.
pub(crate) struct SandboxHookRelayClient {
    relay_folder: PathBuf,
}

impl SandboxHookRelayClient {
    /// Returns a client if this process is inside a confinement: the socket lies below the state
    /// folder.
    pub(crate) fn relay_client_if_in_sandbox(state: &Path) -> Option<Self> {
        let desk = state.join(INSIDE_FOLDER);
        desk.join(SOCKET_NAME)
            .exists()
            .then_some(Self { relay_folder: desk })
    }

    /// Sends a message out and waits for the answer.
    ///
    /// # Errors
    /// If the relay does not answer any more.
    #[cfg(unix)]
    pub(crate) fn relay_message_out_of_sandbox(
        &self,
        arguments: &[OsString],
        message: &[u8],
    ) -> io::Result<HookReply> {
        use std::net::Shutdown;
        let mut stream = connect_relay_socket(&self.relay_folder)?;
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| PASSED_PREFIXES.iter().any(|begin| name.starts_with(begin)))
            .collect();
        let arguments = arguments
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let mut envelope = serde_json::to_vec(&SandboxRelayRequestHeader { arguments, env })?;
        envelope.push(b'\n');
        stream.write_all(&envelope)?;
        stream.write_all(message)?;
        // The message has no length of its own: the relay reads it to its end.
        stream.shutdown(Shutdown::Write)?;
        let mut answer = Vec::new();
        stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
        let cut = answer.iter().position(|byte| *byte == b'\n');
        let (slip, rest) = answer.split_at(cut.map_or(answer.len(), |cut| cut + 1));
        // An empty answer fails here: a relay that died must not be taken for no opinion.
        let slip: RelayReplyHeader = serde_json::from_slice(slip)?;
        let stdout = rest.get(..slip.stdout);
        let stderr = rest.get(slip.stdout..slip.stdout.saturating_add(slip.stderr));
        match (stdout, stderr) {
            (Some(stdout), Some(stderr)) => Ok(HookReply {
                stdout: stdout.to_vec(),
                stderr: stderr.to_vec(),
                exit_code: slip.exit_code,
            }),
            // Half an answer could read as another one, for example as no opinion.
            _ => Err(io::Error::other("the answer was cut")),
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn relay_message_out_of_sandbox(
        &self,
        _arguments: &[OsString],
        _message: &[u8],
    ) -> io::Result<HookReply> {
        Err(io::Error::other("there are no confinements here"))
    }
}

/// Connects to the relay. The address of a socket is limited to about a hundred bytes, so the
/// folder is named by a descriptor of it.
#[cfg(unix)]
fn connect_relay_socket(desk: &Path) -> io::Result<std::os::unix::net::UnixStream> {
    use std::os::fd::AsRawFd as _;
    let folder = std::fs::File::open(desk)?;
    let short = format!("/proc/self/fd/{}/{SOCKET_NAME}", folder.as_raw_fd());
    std::os::unix::net::UnixStream::connect(short)
}
