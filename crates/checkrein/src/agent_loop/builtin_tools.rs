//! Provides the built-in tools of the agent loop: a shell and a patch tool. They do not judge
//! calls; the gates have done that before a tool runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use checkrein_models::BoxFuture;
use checkrein_runtime::{TreeAndStateFolder, WorkspaceTools};
use futures_channel::oneshot;
use serde_json::{Value, json};

use crate::tool::{CallActionDeclaredByTool, Tool, ToolInvocation, ToolOutput};

/// Default time limit of a command.
const TIME: Duration = Duration::from_secs(300);

/// `shell {command}`: runs a command in a folder. Its whole process tree ends with it, at its time
/// limit, and when its future is dropped. The result holds the beginning and the end of its output.
/// Keys of model providers are removed from its environment.
pub struct ShellTool {
    workspace_tools: WorkspaceTools,
    time: Duration,
}

impl ShellTool {
    /// In this folder, five minutes for a command.
    pub fn shell_in_folder(root: impl AsRef<Path>) -> Self {
        Self::shell_tool_in_workspace(TreeAndStateFolder::new_with_per_process_state_folder(
            root.as_ref(),
        ))
    }

    /// Runs in this workspace, with the workspace's environment.
    pub fn shell_tool_in_workspace(place: TreeAndStateFolder) -> Self {
        Self {
            workspace_tools: WorkspaceTools::new(place),
            time: TIME,
        }
    }

    /// Sets the time limit of a command.
    #[must_use]
    pub fn with_command_time_limit(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }
}

impl Tool for ShellTool {
    fn name(&self) -> &str {
        "shell"
    }

    fn tool_description(&self) -> &str {
        "Runs a command in a shell, in the project's folder. Nothing that it starts outlives it."
    }

    fn input_schema(&self) -> Arc<Value> {
        one_string_argument_schema("command", "The command.")
    }

    fn classify_tool_call<'a>(&self, arguments: &'a Value) -> CallActionDeclaredByTool<'a> {
        text_argument(arguments, "command").map_or(
            CallActionDeclaredByTool::Other,
            CallActionDeclaredByTool::Script,
        )
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            // `classify_tool_call` declared such a call as `Other`, so no gate has judged a script:
            // none may run.
            let Some(command) = text_argument(call.arguments, "command") else {
                return ToolOutput::failed("'command' is missing, or no text");
            };
            let (hands, command, time) =
                (self.workspace_tools.clone(), command.to_owned(), self.time);
            run_blocking_tool_on_thread(move |cancelled| hands.run_shell(&command, time, cancelled))
                .await
        })
    }
}

/// `apply_patch {patch}`: applies a patch in a folder, all of it or nothing.
pub struct ApplyPatchTool(WorkspaceTools);

impl ApplyPatchTool {
    /// In this folder.
    pub fn apply_patch_in_folder(root: impl AsRef<Path>) -> Self {
        Self::patch_tool_in_workspace(TreeAndStateFolder::new_with_per_process_state_folder(
            root.as_ref(),
        ))
    }

    /// Applies patches in this workspace. A patch that was being applied when a process died is
    /// finished by the next process with the same state folder.
    pub fn patch_tool_in_workspace(place: TreeAndStateFolder) -> Self {
        Self(WorkspaceTools::new(place))
    }
}

impl Tool for ApplyPatchTool {
    fn name(&self) -> &str {
        "apply_patch"
    }

    fn tool_description(&self) -> &str {
        "Changes files: a patch that begins with `*** Begin Patch`, or a unified diff. All of it is applied, or nothing."
    }

    fn input_schema(&self) -> Arc<Value> {
        one_string_argument_schema("patch", "The patch.")
    }

    fn classify_tool_call<'a>(&self, arguments: &'a Value) -> CallActionDeclaredByTool<'a> {
        text_argument(arguments, "patch").map_or(
            CallActionDeclaredByTool::Other,
            CallActionDeclaredByTool::Patch,
        )
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let Some(patch) = text_argument(call.arguments, "patch") else {
                return ToolOutput::failed("'patch' is missing, or no text");
            };
            let (hands, patch) = (self.0.clone(), patch.to_owned());
            // A patch is not cancelled half way: it is applied as a whole or not at all.
            run_blocking_tool_on_thread(move |_| hands.apply_patch(&patch)).await
        })
    }
}

fn text_argument<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

fn one_string_argument_schema(name: &str, what: &str) -> Arc<Value> {
    Arc::new(json!({
        "type": "object",
        "properties": { name: { "type": "string", "description": what } },
        "required": [name],
        "additionalProperties": false,
    }))
}

/// Sets its flag when the waiting future is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn run_blocking_tool_on_thread(
    work: impl FnOnce(&AtomicBool) -> Result<String, String> + Send + 'static,
) -> ToolOutput {
    // Held across the await: dropping this future drops it and cancels the work on the thread.
    let cancel = CancelOnDrop(Arc::default());
    let flag = cancel.0.clone();
    let (tell, told) = oneshot::channel();
    let started = std::thread::Builder::new()
        .name("tool".to_owned())
        .spawn(move || {
            // The receiver is gone if the run is over: the result is not needed then.
            let _ = tell.send(work(&flag));
        });
    if let Err(error) = started {
        return ToolOutput::failed(format!("no thread could be started for it: {error}"));
    }
    match told.await {
        Ok(Ok(said)) => ToolOutput::from_success(said),
        Ok(Err(why)) => ToolOutput::failed(why),
        // The sender is dropped without a result only if the work panics.
        Err(oneshot::Canceled) => ToolOutput::failed("it was lost on the way"),
    }
}
