//! The built-in tools: a shell and a patch tool, which do what the gates before them let pass.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use checkrein_models::BoxFuture;
use checkrein_runtime::{TreeAndStateFolder, WorkspaceTools};
use futures_channel::oneshot;
use serde_json::{Value, json};

use crate::tool::{Does, Tool, ToolOutput, ToolUse};

/// How long a command may run, if nothing else is said.
const TIME: Duration = Duration::from_secs(300);

/// `shell {command}`: runs a command in a folder. All that it started ends with it, at its time limit,
/// and when nobody waits any more; both ends of its output are told. Keys of model providers are kept from it.
pub struct Shell {
    hands: WorkspaceTools,
    time: Duration,
}

impl Shell {
    /// In this folder, five minutes for a command.
    pub fn in_folder(root: impl AsRef<Path>) -> Self {
        Self::at(TreeAndStateFolder::workspace_for_folder(root.as_ref()))
    }

    /// The same at this place, with its environment.
    pub fn at(place: TreeAndStateFolder) -> Self {
        Self {
            hands: WorkspaceTools::new(place),
            time: TIME,
        }
    }

    /// How long a command may run.
    #[must_use]
    pub fn time_limit(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }
}

impl Tool for Shell {
    fn name(&self) -> &str {
        "shell"
    }

    fn description(&self) -> &str {
        "Runs a command in a shell, in the project's folder. Nothing that it starts outlives it."
    }

    fn schema(&self) -> Arc<Value> {
        one_text("command", "The command.")
    }

    fn does<'a>(&self, arguments: &'a Value) -> Does<'a> {
        text(arguments, "command").map_or(Does::Other, Does::Script)
    }

    fn run<'a>(&'a self, call: ToolUse<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let Some(command) = text(call.arguments, "command") else {
                return ToolOutput::failed("'command' is missing, or no text");
            };
            let (hands, command, time) = (self.hands.clone(), command.to_owned(), self.time);
            beside(move |cancelled| hands.run_shell(&command, time, cancelled)).await
        })
    }
}

/// `apply_patch {patch}`: applies a patch in a folder, all of it or nothing.
pub struct ApplyPatch(WorkspaceTools);

impl ApplyPatch {
    /// In this folder.
    pub fn in_folder(root: impl AsRef<Path>) -> Self {
        Self::at(TreeAndStateFolder::workspace_for_folder(root.as_ref()))
    }

    /// The same at this place: what was under way when a process died is finished by the next one
    /// with the same state folder.
    pub fn at(place: TreeAndStateFolder) -> Self {
        Self(WorkspaceTools::new(place))
    }
}

impl Tool for ApplyPatch {
    fn name(&self) -> &str {
        "apply_patch"
    }

    fn description(&self) -> &str {
        "Changes files: a patch that begins with `*** Begin Patch`, or a unified diff. All of it is applied, or nothing."
    }

    fn schema(&self) -> Arc<Value> {
        one_text("patch", "The patch.")
    }

    fn does<'a>(&self, arguments: &'a Value) -> Does<'a> {
        text(arguments, "patch").map_or(Does::Other, Does::Patch)
    }

    fn run<'a>(&'a self, call: ToolUse<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let Some(patch) = text(call.arguments, "patch") else {
                return ToolOutput::failed("'patch' is missing, or no text");
            };
            let (hands, patch) = (self.0.clone(), patch.to_owned());
            beside(move |_| hands.apply_patch(&patch)).await
        })
    }
}

fn text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

fn one_text(name: &str, what: &str) -> Arc<Value> {
    Arc::new(json!({
        "type": "object",
        "properties": { name: { "type": "string", "description": what } },
        "required": [name],
        "additionalProperties": false,
    }))
}

/// Sets its flag when whoever waits is gone.
struct Cancel(Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn beside(
    work: impl FnOnce(&AtomicBool) -> Result<String, String> + Send + 'static,
) -> ToolOutput {
    let cancel = Cancel(Arc::default());
    let flag = cancel.0.clone();
    let (tell, told) = oneshot::channel();
    let started = std::thread::Builder::new()
        .name("tool".to_owned())
        .spawn(move || {
            // Nobody listens any more if the run is over.
            let _ = tell.send(work(&flag));
        });
    if let Err(error) = started {
        return ToolOutput::failed(format!("no thread could be started for it: {error}"));
    }
    match told.await {
        Ok(Ok(said)) => ToolOutput::ran(said),
        Ok(Err(why)) => ToolOutput::failed(why),
        Err(oneshot::Canceled) => ToolOutput::failed("it was lost on the way"),
    }
}
