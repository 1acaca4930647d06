//! The tools that the server declares. The proxy asks for their list before the first call, and
//! again when the server says that it has changed.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use checkrein::models::ToolDefinition;
use checkrein_runtime::veto::{InvalidToolCallError, ToolsWithCompiledSchemas};
use serde_json::{Map, Value, json};

use crate::ui;

/// How long the list may take; without it calls are judged by everything else.
const TOOL_LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Pages of the list that are read.
const MAX_PAGES: usize = 100;

/// The list, and what is under way to get it.
#[derive(Default)]
pub(super) struct ServerDeclaredTools {
    state: Mutex<McpToolListState>,
    changed: Condvar,
}

#[derive(Default)]
struct McpToolListState {
    tools: Option<Arc<ToolsWithCompiledSchemas>>,
    /// The list could not be had, and is not asked for again until the server says that it changed.
    refused: bool,
    page: Option<ToolListPage>,
    asked: u64,
    gone: bool,
}

/// One page of the list.
enum ToolListPage {
    Tools(Value),
    Refused,
}

impl ServerDeclaredTools {
    fn lock_tool_list_state(&self) -> MutexGuard<'_, McpToolListState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the list, because the server says that it has changed.
    pub(super) fn forget_declared_tools(&self) {
        let mut state = self.lock_tool_list_state();
        (state.tools, state.refused) = (None, false);
    }

    /// Notes that the server's output has ended.
    pub(super) fn mark_server_gone(&self) {
        self.lock_tool_list_state().gone = true;
        self.changed.notify_all();
    }

    /// Takes in the answer to the request of this number, unless nobody waits for it any more.
    pub(super) fn hand_tool_list_page_to_waiter(&self, asked: u64, answer: Result<Value, ()>) {
        let mut state = self.lock_tool_list_state();
        if state.asked == asked {
            state.page = Some(answer.map_or(ToolListPage::Refused, ToolListPage::Tools));
            self.changed.notify_all();
        }
    }

    /// Returns why a call cannot be right, as far as the server's own list tells. `ask` sends a
    /// request for a page under this number.
    pub(super) fn check_call_against_declared_tools(
        &self,
        tool: &str,
        args: &Value,
        meta: &Value,
        ask: &dyn Fn(u64, Value),
    ) -> Option<InvalidToolCallError> {
        // The lock is not held while a page is awaited: the thread that receives it needs the
        // lock too.
        let known = self.lock_tool_list_state().tools.clone();
        let fresh = known.is_none();
        let tools = known.or_else(|| self.fetch_declared_mcp_tools(meta, ask))?;
        let misfit = tools.check_tool_call_schema(tool, args).err()?;
        // Not every server announces that its tools changed, so an unknown tool is looked up anew.
        if !fresh && matches!(misfit, InvalidToolCallError::UnknownTool { .. }) {
            self.forget_declared_tools();
            return self
                .fetch_declared_mcp_tools(meta, ask)?
                .check_tool_call_schema(tool, args)
                .err();
        }
        Some(misfit)
    }

    fn fetch_declared_mcp_tools(
        &self,
        meta: &Value,
        ask: &dyn Fn(u64, Value),
    ) -> Option<Arc<ToolsWithCompiledSchemas>> {
        if self.lock_tool_list_state().refused {
            return None;
        }
        let found = self.fetch_tool_pages(meta, ask);
        let mut state = self.lock_tool_list_state();
        match found {
            Ok(found) => {
                let tools = Arc::new(ToolsWithCompiledSchemas::new(&found));
                for doubt in tools.unusable_tool_schema_errors() {
                    ui::print_wrapped_to_stderr(&format!(
                        "checkrein mcp-proxy: arguments are not checked: {doubt}"
                    ));
                }
                state.tools = Some(tools);
            }
            Err(why) => {
                ui::print_wrapped_to_stderr(&format!(
                    "checkrein mcp-proxy: arguments are not checked: {why}"
                ));
                state.refused = true;
            }
        }
        state.tools.clone()
    }

    fn fetch_tool_pages(
        &self,
        meta: &Value,
        ask: &dyn Fn(u64, Value),
    ) -> Result<Vec<ToolDefinition>, String> {
        let mut found = Vec::new();
        let mut cursor = Value::Null;
        let until = Instant::now() + TOOL_LIST_TIMEOUT;
        for _ in 0..MAX_PAGES {
            // The number tells this request's answer from a late answer to an earlier one.
            let number = {
                let mut state = self.lock_tool_list_state();
                state.asked += 1;
                state.page = None;
                state.asked
            };
            let mut params = Map::new();
            if !cursor.is_null() {
                params.insert("cursor".to_owned(), cursor);
            }
            // Since 2026-07-28 each request names the protocol in its metadata.
            if meta.is_object() {
                params.insert("_meta".to_owned(), meta.clone());
            }
            ask(number, Value::Object(params));
            let page = self.wait_for_mcp_tool_list_page(until)?;
            let tools = page.get("tools").and_then(Value::as_array);
            let tools = tools.ok_or("its list of tools has none of the form that MCP knows")?;
            // An entry without a name declares nothing that could be called.
            found.extend(tools.iter().filter_map(parse_mcp_tool_definition));
            cursor = page.get("nextCursor").cloned().unwrap_or_default();
            if cursor.is_null() {
                return Ok(found);
            }
        }
        Err(format!("its list of tools has more than {MAX_PAGES} pages"))
    }

    fn wait_for_mcp_tool_list_page(&self, until: Instant) -> Result<Value, String> {
        let mut state = self.lock_tool_list_state();
        loop {
            match state.page.take() {
                Some(ToolListPage::Tools(page)) => return Ok(page),
                Some(ToolListPage::Refused) => return Err("the server lists no tools".to_owned()),
                None => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if state.gone || left.is_zero() {
                return Err("the server did not list its tools in time".to_owned());
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

fn parse_mcp_tool_definition(tool: &Value) -> Option<ToolDefinition> {
    let text = |field: &str| tool.get(field).and_then(Value::as_str).map(str::to_owned);
    let schema = tool.get("inputSchema").cloned();
    Some(ToolDefinition {
        name: text("name")?,
        description: text("description").unwrap_or_default(),
        schema: Arc::new(schema.unwrap_or_else(|| json!({}))),
    })
}
