//! `checkrein mcp`: an MCP server on stdio by which an agent asks Checkrein. It runs checks and
//! reports what is known; it approves nothing, seals nothing and changes no setting (laws 10 and
//! 11).

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use checkrein_store::{ApprovalStatus, SqliteStore};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::args::McpArgs;
use crate::commands::{approvals, check, lookup, sessions, show};
use crate::ui::errors::CommandError;
use crate::ui::printable::escape_to_one_line;
use crate::{exit_code, locate};

/// Instructions for the client's model.
const INSTRUCTIONS: &str = "Checkrein decides whether work is done by this folder's own checks. Before you say that you are \
done, call verify. A question that waits for a person is answered by them, in a terminal of their own, and by nobody else.";

pub(crate) fn run_mcp_server_command(args: &McpArgs) -> Result<ExitCode, CommandError> {
    // Only this command needs the SDK's executor, so it is started here.
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let server = CheckreinMcpServer {
        profile: args.profile.clone(),
    };
    let served = executor.block_on(async {
        match server.serve(rmcp::transport::stdio()).await {
            Ok(running) => running
                .waiting()
                .await
                .map(drop)
                .map_err(|error| error.to_string()),
            // A client that leaves before the handshake is done has made no error.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    });
    // Checks that still run are not waited for: they are killed with this process.
    executor.shutdown_background();
    served.map_err(|why| CommandError::cli_failure_error(format!("mcp: {why}")))?;
    Ok(exit_code::to_exit_code(exit_code::YES))
}

/// Serves one client.
struct CheckreinMcpServer {
    profile: Option<String>,
}

/// The tools that an agent may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckreinMcpTool {
    Verify,
    Evidence,
    Approvals,
}

impl CheckreinMcpTool {
    const ALL: [Self; 3] = [Self::Verify, Self::Evidence, Self::Approvals];

    fn served_mcp_tool_name(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Evidence => "evidence",
            Self::Approvals => "approvals",
        }
    }

    fn mcp_tool_definition(self) -> Tool {
        let text = |description: &str| json!({ "type": "string", "description": description });
        let (description, properties, annotations) = match self {
            Self::Verify => (
                "Runs this folder's checks on the files as they are now, and says what they find. It informs: whether work is accepted is decided when you stop.",
                json!({ "verifiers": { "type": "array", "items": { "type": "string" },
                                       "description": "names of checks; all of them if left out" } }),
                // A check is a command of the person: it may build, and fetch what it needs.
                ToolAnnotations::with_title("Run the checks")
                    .read_only(false)
                    .destructive(false)
                    .idempotent(true),
            ),
            Self::Evidence => (
                "How a task ended or stands, why, and what its checks found.",
                json!({ "task": text("SESSION or SESSION/TASK, the beginning of an id is enough; the newest task if left out") }),
                ToolAnnotations::with_title("Show the evidence")
                    .read_only(true)
                    .open_world(false),
            ),
            Self::Approvals => (
                "What waits for a person's answer here. They answer in a terminal of their own: nothing can be approved by this tool.",
                json!({}),
                ToolAnnotations::with_title("List what waits for a person")
                    .read_only(true)
                    .open_world(false),
            ),
        };
        // Unknown arguments are refused, so that a model learns of its mistake.
        let schema =
            json!({ "type": "object", "properties": properties, "additionalProperties": false });
        Tool::new(
            self.served_mcp_tool_name(),
            description,
            json_object_or_empty(schema),
        )
        .with_annotations(annotations)
    }
}

impl ServerHandler for CheckreinMcpServer {
    fn get_info(&self) -> ServerConfig {
        let able = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(able)
            .with_server_info(Implementation::new("checkrein", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = CheckreinMcpTool::ALL
            .into_iter()
            .map(CheckreinMcpTool::mcp_tool_definition)
            .collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut all = CheckreinMcpTool::ALL.into_iter();
        let Some(question) = all.find(|question| question.served_mcp_tool_name() == request.name)
        else {
            let text = format!("there is no tool '{}'", request.name);
            return Err(ErrorData::invalid_params(text, None));
        };
        let args = Value::Object(request.arguments.unwrap_or_default());
        let profile = self.profile.clone();
        let cancelled = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&cancelled);
        // A cancelled request cancels its checks: nobody waits for them any more.
        let watch = tokio::spawn(async move {
            context.ct.cancelled().await;
            told.store(true, Ordering::Relaxed);
        });
        // Checks block, and the executor has a single thread, which must go on reading.
        let answered = tokio::task::spawn_blocking(move || {
            run_checkrein_mcp_tool(question, args, profile, &cancelled)
        })
        .await;
        watch.abort();
        let answered =
            answered.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        // A refusal is a result, which the model reads; an error of the protocol might not reach
        // it.
        Ok(match answered {
            Ok((text, document)) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(document);
                result
            }
            Err(error) => {
                CallToolResult::error(vec![ContentBlock::text(error_text_with_hint(&error))])
            }
        }
        .into())
    }
}

/// The reply as text and as a document.
type McpToolReply = Result<(String, Value), CommandError>;

fn run_checkrein_mcp_tool(
    question: CheckreinMcpTool,
    args: Value,
    profile: Option<String>,
    cancelled: &AtomicBool,
) -> McpToolReply {
    match question {
        CheckreinMcpTool::Verify => run_verify_tool(
            &deserialize_mcp_tool_arguments(args)?,
            profile.as_deref(),
            cancelled,
        ),
        CheckreinMcpTool::Evidence => {
            answer_mcp_evidence_call(&deserialize_mcp_tool_arguments(args)?)
        }
        CheckreinMcpTool::Approvals => {
            let EmptyToolArgs {} = deserialize_mcp_tool_arguments(args)?;
            run_approvals_tool()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifyToolArgs {
    #[serde(default)]
    verifiers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct McpEvidenceToolArguments {
    task: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyToolArgs {}

fn deserialize_mcp_tool_arguments<T: DeserializeOwned>(args: Value) -> Result<T, CommandError> {
    serde_json::from_value(args).map_err(|error| {
        CommandError::usage_error(
            format!("these arguments do not fit: {error}"),
            "tools/list says what each tool takes",
        )
    })
}

fn run_verify_tool(
    asked: &VerifyToolArgs,
    profile: Option<&str>,
    cancelled: &AtomicBool,
) -> McpToolReply {
    let asked = check::ChecksSelectedByArgs::select_checks_from_args(&asked.verifiers, profile)?;
    let report = asked.run_checks(true, cancelled, &|_| {})?;
    Ok((
        check::check_report_text(&report),
        check::check_report_json(&report),
    ))
}

fn answer_mcp_evidence_call(asked: &McpEvidenceToolArguments) -> McpToolReply {
    let located = locate::locate_project(&std::env::current_dir()?, None);
    // An agent's question must not make a store.
    let store = SqliteStore::open_store_read_only(&located.place.state)?;
    let row = lookup::find_task(&store, asked.task.as_deref())?;
    let events = lookup::task_events(&store, &row.session, row.task)?;
    let why =
        show::ending_explanation_lines(&row, lookup::ending_of_task_row(&row).as_ref(), &events);
    let why: Vec<String> = why
        .iter()
        .map(|line| escape_to_one_line(&line.text_without_styling()))
        .collect();
    let listed = sessions::fill_task_rows_from_session_logs(&store, vec![row])?.pop();
    let listed = listed.ok_or_else(|| CommandError::cli_failure_error("the task is gone"))?;
    let mut document = show::task_detail_json(&listed, &events);
    if let Some(fields) = document.as_object_mut() {
        fields.insert(
            "verifiers".to_owned(),
            check::latest_evidence_json(&store, &events),
        );
    }
    Ok((why.join("\n"), document))
}

fn run_approvals_tool() -> McpToolReply {
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let now = checkrein_runtime::now_millis();
    let mut rows = approvals::load_approvals(&located)?;
    rows.retain(|row| row.approval_status_at(now) == ApprovalStatus::Asked);
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| escape_to_one_line(&format!("{}: {}", row.id, approvals::approval_summary(row))))
        .collect();
    lines.push(match lines.as_slice() {
        [] => "Nothing waits for a person here.".to_owned(),
        [_, ..] => "A person answers, in a terminal of their own: checkrein approve ID, or checkrein deny ID".to_owned(),
    });
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| approvals::approval_json(row, now))
        .collect();
    let document = json!({ "schema": "checkrein/approvals/1", "approvals": rows });
    Ok((lines.join("\n"), document))
}

fn json_object_or_empty(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn error_text_with_hint(error: &CommandError) -> String {
    match &error.hint {
        Some(hint) => format!("{}\n{hint}", error.what),
        None => error.what.clone(),
    }
}
