//! What a tool call does, as far as the tool's name and its arguments tell: one table for every
//! agent, so that the same call gets the same answer at every entry point. Nothing here looks at a
//! file; whether a path is protected, and where it really lies, is the runtime's question.

mod arguments;
mod command;
mod names;

use serde_json::Value;

use crate::input::ToolKind;
use arguments::FoundPaths;
use names::{BareName, KnownTool};

/// What one tool call does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAction {
    /// The kind of tool, as the core counts it.
    pub kind: ToolKind,
    /// How far a call reaches that neither runs a command nor writes a named file.
    pub reach: ToolReach,
    /// The command that it runs.
    pub command: Option<ToolCommand>,
    /// The folders that it names beside its command, or its patch: it starts in one of them.
    pub folders: Vec<CallFolder>,
    /// A server runs it, whose own folder need not be the agent's.
    pub is_of_server: bool,
    /// The text of the patch that it applies.
    pub patch: Option<String>,
    /// The files that it writes.
    pub writes: Vec<String>,
    /// The files and folders that it removes or moves away.
    pub removes: Vec<String>,
    /// The files that it reads.
    pub reads: Vec<String>,
    /// Arguments that may name a file that it writes: those of a tool that is not known to read only.
    pub may_write: Vec<String>,
    /// The arguments hold more texts, or hold them deeper, than were looked at.
    pub is_cut: bool,
}

/// How far a call reaches that neither runs a command nor writes a named file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolReach {
    /// It looks at what is here, plans, or talks to the person.
    ReadsOnly,
    /// It asks the network.
    Network,
    /// Whatever it likes.
    Unknown,
}

/// A command in the arguments of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCommand {
    /// A text for a shell.
    Script(String),
    /// Words for no shell.
    Argv(Vec<String>),
}

/// A folder in the arguments of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFolder {
    /// The call starts there.
    Named(String),
    /// It may start there: the argument can mean another thing as well.
    Possible(String),
    /// It starts in a folder that only the run knows.
    Unknown,
}

impl CallFolder {
    /// Whether the call starts in a folder that it names.
    pub fn is_sure(&self) -> bool {
        !matches!(self, Self::Possible(_))
    }

    /// Its path, if that is known.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Named(path) | Self::Possible(path) => Some(path),
            Self::Unknown => None,
        }
    }
}

impl Default for ToolAction {
    fn default() -> Self {
        Self {
            kind: ToolKind::Other,
            reach: ToolReach::Unknown,
            command: None,
            folders: Vec::new(),
            is_of_server: false,
            patch: None,
            writes: Vec::new(),
            removes: Vec::new(),
            reads: Vec::new(),
            may_write: Vec::new(),
            is_cut: false,
        }
    }
}

impl ToolAction {
    /// Whether it may do anything: it neither runs a command nor writes a named file, and is not
    /// known to read only.
    pub fn may_act(&self) -> bool {
        self.kind == ToolKind::Other && self.reach != ToolReach::ReadsOnly
    }

    /// The script that it runs.
    pub fn script(&self) -> Option<&str> {
        match self.command.as_ref()? {
            ToolCommand::Script(script) => Some(script),
            ToolCommand::Argv(_) => None,
        }
    }

    /// A call that applies this patch.
    pub fn of_patch(text: &str) -> Self {
        Self {
            kind: ToolKind::Write,
            patch: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// A call that runs this script.
    pub fn of_script(text: &str) -> Self {
        Self {
            kind: ToolKind::Shell,
            command: Some(ToolCommand::Script(text.to_owned())),
            ..Self::default()
        }
    }
}

/// What a call of this tool with these arguments does. Tools of MCP servers are named
/// `mcp__SERVER__TOOL`; what a server says of its tools (`readOnlyHint`) excuses nothing.
pub fn classify_call(tool: &str, args: &Value) -> ToolAction {
    let name = BareName::of(tool);
    ToolAction {
        is_of_server: name.is_server_tool(),
        ..classify(&name, args)
    }
}

fn classify(name: &BareName<'_>, args: &Value) -> ToolAction {
    match names::known_tool(name, args) {
        Some(KnownTool::Shell) => runs(command::of_shell_tool(args), FoundPaths::of(args)),
        Some(KnownTool::Poll) => ToolAction {
            kind: ToolKind::Poll,
            ..ToolAction::default()
        },
        Some(KnownTool::Write) => writes(name, args),
        Some(KnownTool::ReadsOnly) => {
            let found = FoundPaths::of(args);
            ToolAction {
                reach: ToolReach::ReadsOnly,
                reads: found.named,
                may_write: found.outputs,
                ..ToolAction::default()
            }
        }
        Some(KnownTool::Network) => ToolAction {
            reach: ToolReach::Network,
            ..ToolAction::default()
        },
        Some(KnownTool::Agent) => ToolAction::default(),
        None => match command::of_any_tool(args) {
            Some(command) => runs(Some(command), FoundPaths::of(args)),
            None => of_unknown(name, args),
        },
    }
}

fn runs(command: Option<ToolCommand>, found: FoundPaths) -> ToolAction {
    ToolAction {
        kind: ToolKind::Shell,
        command,
        folders: found.starts,
        may_write: found.outputs,
        ..ToolAction::default()
    }
}

/// A tool whose name is not in the table: the verbs in its name tell whether it changes files.
fn of_unknown(name: &BareName<'_>, args: &Value) -> ToolAction {
    if name.changes() {
        return writes(name, args);
    }
    let found = FoundPaths::of(args);
    if name.reads() {
        return ToolAction {
            reads: found.named,
            may_write: found.outputs,
            is_cut: found.is_cut,
            ..ToolAction::default()
        };
    }
    ToolAction {
        may_write: found.named.into_iter().chain(found.others).collect(),
        is_cut: found.is_cut,
        ..ToolAction::default()
    }
}

fn writes(name: &BareName<'_>, args: &Value) -> ToolAction {
    let FoundPaths {
        named,
        sources,
        patched,
        others,
        is_cut,
        folders,
        starts,
        ..
    } = FoundPaths::of(args);
    let mut writes = named;
    if writes.is_empty() && name.takes_away(args) {
        writes = folders;
    }
    let mut reads = Vec::new();
    if name.only_copies() {
        writes.retain(|path| !sources.contains(path));
        reads.clone_from(&sources);
    }
    if name.relocates() {
        // Into a folder a file goes under its own name.
        let folders: Vec<String> = writes
            .iter()
            .filter(|path| !sources.contains(path))
            .cloned()
            .collect();
        for folder in &folders {
            let inside = |source: &String| arguments::inside(folder, source);
            writes.extend(sources.iter().filter_map(inside));
        }
    }
    writes.extend(patched);
    let patch = name.applies_patch().then(|| command::patch(args)).flatten();
    let removes = match name.takes_away(args) {
        true => writes.clone(),
        false => Vec::new(),
    };
    // A server's tool that names no file here changes something elsewhere.
    let elsewhere = name.is_server_tool() && writes.is_empty() && patch.is_none();
    ToolAction {
        kind: match elsewhere || writes.is_empty() && !name.is_known_writer() {
            true => ToolKind::Other,
            false => ToolKind::Write,
        },
        folders: starts,
        patch,
        writes,
        removes,
        reads,
        may_write: others,
        is_cut,
        ..ToolAction::default()
    }
}

#[cfg(test)]
mod tests;
