//! What is sent: where to, with which key, and every part of a conversation in its place.

use std::sync::Arc;

use checkrein_models::{
    ChatMessage, LanguageModel, ModelReply, ModelRequest, RemoteModel, RequestedToolCall,
    StructuredAnswerSchema, ToolDefinition, block_on,
};
use serde_json::{Value, json};

use crate::server::{ModelServer, ServerAnswer};
use crate::wires::{FixtureEnd, FixtureReply, KEY, WireFixture, all};
use crate::{LIMITS, ask, question, said};

fn sent(wire: &WireFixture, request: &ModelRequest) -> Value {
    let answer = ServerAnswer::stream(&(wire.say)(&said()));
    let (reply, server) = ask(wire, request, LIMITS, vec![answer]);
    reply.unwrap_or_else(|error| panic!("{}: {error}", wire.name));
    server.seen(|seen| seen[0].body.clone())
}

fn of<'a>(wires: &'a [WireFixture], name: &str) -> &'a WireFixture {
    wires
        .iter()
        .find(|wire| wire.name.starts_with(name))
        .unwrap()
}

#[test]
fn the_key_is_in_its_header_and_nowhere_else() {
    for wire in all() {
        let answer = ServerAnswer::stream(&(wire.say)(&said()));
        let (reply, server) = ask(&wire, &question(), LIMITS, vec![answer]);
        reply.unwrap();
        server.seen(|seen| {
            let (name, value) = &wire.header;
            assert_eq!(seen[0].target, wire.target);
            assert_eq!(seen[0].header(name), Some(value.as_str()), "{}", wire.name);
            assert_eq!(seen[0].headers_with(KEY), [*name], "{}", wire.name);
            assert!(!seen[0].body.to_string().contains(KEY), "{}", wire.name);
            let version = seen[0].header("anthropic-version");
            let expected = wire.name.starts_with("anthropic").then_some("2023-06-01");
            assert_eq!(version, expected, "{}", wire.name);
        });
    }
}

/// A schema of an object with these properties, all of them texts.
fn schema(properties: &[&str]) -> Value {
    let fields: serde_json::Map<String, Value> = properties
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
        .collect();
    json!({
        "type": "object", "properties": fields, "required": properties,
        "additionalProperties": false,
    })
}

#[test]
fn the_schema_of_an_answer_is_on_the_wire() {
    let wanted = schema(&["verdict"]);
    let request = ModelRequest {
        output_schema: Some(StructuredAnswerSchema {
            name: "verdict",
            schema: Arc::new(wanted.clone()),
        }),
        max_tokens: Some(321),
        ..question()
    };
    let wires = all();
    let body = sent(of(&wires, "anthropic"), &request);
    let format = json!({ "type": "json_schema", "schema": wanted });
    assert_eq!(body["output_config"]["format"], format);
    assert_eq!(body["max_tokens"], 321);

    let body = sent(of(&wires, "openai/"), &request);
    let format =
        json!({ "type": "json_schema", "name": "verdict", "schema": wanted, "strict": true });
    assert_eq!(body["text"]["format"], format);
    assert_eq!(body["max_output_tokens"], 321);

    for (name, limit) in [
        ("openai-chat", "max_completion_tokens"),
        ("ollama", "max_tokens"),
    ] {
        let body = sent(of(&wires, name), &request);
        let format = json!({ "type": "json_schema", "json_schema": {
            "name": "verdict", "schema": wanted, "strict": true,
        } });
        assert_eq!(body["response_format"], format, "{name}");
        assert_eq!(body[limit], 321, "{name}");
    }

    let body = sent(of(&wires, "gemini"), &request);
    let config = json!({
        "maxOutputTokens": 321, "responseMimeType": "application/json",
        "responseJsonSchema": wanted,
    });
    assert_eq!(body["generationConfig"], config);
}

#[test]
fn who_knows_no_schemas_is_told_in_words() {
    let server = ModelServer::start(vec![ServerAnswer::stream(
        &(of(&all(), "openai-chat").say)(&said()),
    )]);
    let environment = [
        ("GROQ_BASE_URL".into(), server.base.clone().into()),
        ("GROQ_API_KEY".into(), KEY.into()),
    ];
    let model = RemoteModel::new("groq/m", &environment.into(), LIMITS).unwrap();
    let request = ModelRequest {
        output_schema: Some(StructuredAnswerSchema {
            name: "verdict",
            schema: Arc::new(schema(&["verdict"])),
        }),
        ..question()
    };
    block_on(model.ask_model(&request)).unwrap();
    server.seen(|seen| {
        let body = &seen[0].body;
        assert_eq!(body.get("response_format"), None);
        let system = body["messages"][0]["content"].as_str().unwrap();
        assert!(
            system.starts_with("be brief\n\nAnswer with one JSON object"),
            "{system}"
        );
        assert!(
            system.contains(&schema(&["verdict"]).to_string()),
            "{system}"
        );
    });
}

/// Two calls side by side, one of which fails, one with arguments that were none, and a person
/// who speaks between.
fn conversation() -> ModelRequest {
    let call = |id: &str, arguments: Result<Value, String>, kept: Option<&str>| RequestedToolCall {
        id: id.to_owned(),
        tool: "read".to_owned(),
        arguments,
        provider_state: kept.map(str::to_owned),
    };
    let result = |id: &str, text: &str, failed: bool| ChatMessage::ToolResult {
        call: id.to_owned(),
        tool: "read".to_owned(),
        text: text.to_owned(),
        failed,
    };
    ModelRequest {
        messages: vec![
            ChatMessage::User("look".to_owned()),
            ChatMessage::Assistant {
                text: "I look.".to_owned(),
                calls: vec![
                    call("c1", Ok(json!({ "path": "a" })), Some("c2ln")),
                    call("c2", Err("{oops".to_owned()), None),
                ],
            },
            result("c1", "text of a", false),
            result("c2", "no such file", true),
            ChatMessage::User("go on".to_owned()),
            ChatMessage::Assistant {
                text: String::new(),
                calls: vec![call("c3", Ok(json!([1])), None)],
            },
            result("c3", "", false),
        ],
        tools: vec![ToolDefinition {
            name: "read".to_owned(),
            description: "Reads a file.".to_owned(),
            schema: Arc::new(schema(&["path"])),
        }],
        ..question()
    }
}

/// What comes back when the answer with thoughts and two calls is in the conversation; `None`
/// refuses that once.
fn sent_again(wire: &WireFixture, refuse: bool) -> (ModelReply, Vec<Value>) {
    let said = FixtureReply {
        thought: Some("hm"),
        calls: vec![
            ("c1", "read", vec!["{\"path\":", "\"a\"}"]),
            ("c2", "read", vec![]),
        ],
        end: FixtureEnd::Calls,
        ..said()
    };
    let last = ServerAnswer::stream(&(wire.say)(&crate::said()));
    let no = ServerAnswer::error(
        "400 Bad Request",
        "",
        &json!({ "error": { "message": "signature" } }),
    );
    let mut answers = vec![ServerAnswer::stream(&(wire.say)(&said)), last.clone()];
    if refuse {
        answers = vec![answers[0].clone(), no.clone(), last, no];
    }
    let server = ModelServer::start(answers);
    let model = RemoteModel::new(wire.name, &wire.environment(&server.base), LIMITS).unwrap();
    let mut request = question();
    let reply = block_on(model.ask_model(&request)).unwrap();
    let results = reply.calls.iter().map(|call| ChatMessage::ToolResult {
        call: call.id.clone(),
        tool: call.tool.clone(),
        text: "read".to_owned(),
        failed: false,
    });
    let results: Vec<_> = results.collect();
    request.messages.push(ChatMessage::Assistant {
        text: reply.text.clone(),
        calls: reply.calls.clone(),
    });
    request.messages.extend(results);
    block_on(model.ask_model(&request)).unwrap();
    (
        reply,
        server.seen(|seen| seen[1..].iter().map(|seen| seen.body.clone()).collect()),
    )
}

#[test]
fn what_a_provider_wants_to_see_again_is_sent_again() {
    let wires = all();
    let call = |id: &str, input: Value| json!({ "type": "tool_use", "id": id, "name": "read", "input": input });
    let (reply, bodies) = sent_again(of(&wires, "anthropic"), false);
    // Whoever keeps the conversation reads nothing of it as text.
    assert_eq!(reply.text, "It is döne.\n");
    let expected = json!([
        { "type": "thinking", "thinking": "hm", "signature": "c2ln" },
        { "type": "redacted_thinking", "data": "eHl6" },
        { "type": "text", "text": "It is döne.\n" },
        call("c1", json!({ "path": "a" })),
        call("c2", json!({})),
    ]);
    assert_eq!(bodies[0]["messages"][1]["content"], expected);

    let (_, bodies) = sent_again(of(&wires, "gemini"), false);
    let parts = &bodies[0]["contents"][1]["parts"];
    assert_eq!(parts[1]["thoughtSignature"], "c2ln");
    assert_eq!(parts[1]["functionCall"]["args"], json!({ "path": "a" }));

    let (reply, bodies) = sent_again(of(&wires, "openai/"), false);
    assert_eq!(reply.text, "It is döne.\n");
    let items = bodies[0]["input"].as_array().unwrap();
    let summary = json!([{ "type": "summary_text", "text": "hm" }]);
    let thought = json!({ "type": "reasoning", "encrypted_content": "c2ln", "summary": summary });
    assert_eq!(items[1], thought);
    let kinds: Vec<_> = items
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    let calls = ["function_call", "function_call"];
    let results = ["function_call_output", "function_call_output"];
    assert_eq!(kinds[..3], ["message", "reasoning", "message"]);
    assert_eq!((&kinds[3..5], &kinds[5..]), (&calls[..], &results[..]));

    // Nobody else is sent thoughts.
    for name in ["openai-chat", "ollama"] {
        let (reply, bodies) = sent_again(of(&wires, name), false);
        assert_eq!(reply.calls[0].provider_state, None, "{name}");
        assert!(!bodies[0].to_string().contains("hm"), "{name}");
    }
}

#[test]
fn what_is_refused_again_is_left_out() {
    let wires = all();
    for (name, signed) in [
        ("anthropic", "thinking"),
        ("gemini", "c2ln"),
        ("openai/", "c2ln"),
    ] {
        let (_, bodies) = sent_again(of(&wires, name), true);
        let has: Vec<bool> = bodies
            .iter()
            .map(|body| body.to_string().contains(signed))
            .collect();
        assert_eq!(has, [true, false], "{name}");
    }
}

#[test]
fn an_answer_that_was_changed_is_sent_without_its_thoughts() {
    let kept = json!([
        { "thought": { "type": "thinking", "thinking": "hm", "signature": "c2ln" } },
        { "call": "c1" },
    ]);
    let call = |id: &str| RequestedToolCall {
        id: id.to_owned(),
        tool: "read".to_owned(),
        arguments: Ok(json!({})),
        provider_state: Some(kept.to_string()),
    };
    for (text, calls) in [
        ("", vec![call("c1"), call("c2")]),
        ("", vec![call("c2")]),
        ("said by us", vec![call("c1")]),
    ] {
        let mut request = question();
        let text = text.to_owned();
        request
            .messages
            .push(ChatMessage::Assistant { text, calls });
        let body = sent(of(&all(), "anthropic"), &request);
        assert!(!body.to_string().contains("thinking"), "{body}");
    }
}

#[test]
fn providers_of_one_wire_differ() {
    let wires = all();
    let chat = of(&wires, "openai-chat");
    let said = FixtureReply {
        thought: Some("hm"),
        calls: vec![("c1", "read", vec![])],
        end: FixtureEnd::Calls,
        ..said()
    };
    let server = ModelServer::start(vec![
        ServerAnswer::stream(&(chat.say)(&said)),
        ServerAnswer::stream(&(chat.say)(&said)),
        ServerAnswer::stream(&(chat.say)(&said)),
    ]);
    let environment = ["DEEPSEEK", "MISTRAL"].iter().flat_map(|name| {
        [
            (
                format!("{name}_BASE_URL").into(),
                server.base.clone().into(),
            ),
            (format!("{name}_API_KEY").into(), KEY.into()),
        ]
    });
    let environment = environment.collect();
    let deepseek = RemoteModel::new("deepseek/m", &environment, LIMITS).unwrap();
    let mistral = RemoteModel::new("mistral/m", &environment, LIMITS).unwrap();
    let mut request = question();
    let reply = block_on(deepseek.ask_model(&request)).unwrap();
    request.messages.push(ChatMessage::Assistant {
        text: reply.text,
        calls: reply.calls,
    });
    request.messages.push(ChatMessage::Assistant {
        text: "and".to_owned(),
        calls: vec![],
    });
    block_on(deepseek.ask_model(&request)).unwrap();
    block_on(mistral.ask_model(&request)).unwrap();
    // Older models of OpenAI do not think, and refuse to be asked for thoughts.
    let openai = of(&wires, "openai/");
    let mut older = conversation();
    older.messages.truncate(1);
    for (name, asked) in [("openai/gpt-4.1-mini", false), ("openai/gpt-6-sol", true)] {
        let server = ModelServer::start(vec![ServerAnswer::stream(&(openai.say)(&crate::said()))]);
        let model = RemoteModel::new(name, &openai.environment(&server.base), LIMITS).unwrap();
        block_on(model.ask_model(&older)).unwrap();
        server.seen(|seen| assert_eq!(seen[0].body.get("include").is_some(), asked, "{name}"));
    }
    server.seen(|seen| {
        let messages = &seen[1].body["messages"];
        assert_eq!(messages[2]["reasoning_content"], "hm");
        assert_eq!(messages[3]["reasoning_content"], "");
        assert!(seen[1].body.get("stream_options").is_some());
        // It refuses every field that it does not know.
        assert_eq!(seen[2].body.get("stream_options"), None);
        assert_eq!(seen[2].body["messages"][2].get("reasoning_content"), None);
    });
}

#[test]
fn anthropic_is_told_the_conversation() {
    let cache = json!({ "type": "ephemeral" });
    let expected = json!({
        "model": "claude-x", "max_tokens": 16_384, "stream": true,
        "system": [{ "type": "text", "text": "be brief", "cache_control": cache }],
        "tools": [{ "name": "read", "description": "Reads a file.", "input_schema": schema(&["path"]) }],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "look" }] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "c1", "name": "read", "input": { "path": "a" } },
                { "type": "tool_use", "id": "c2", "name": "read", "input": { "not_json": "{oops" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "c1", "content": "text of a", "is_error": false },
                { "type": "tool_result", "tool_use_id": "c2", "content": "no such file", "is_error": true },
                { "type": "text", "text": "go on" },
            ] },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "c3", "name": "read", "input": { "not_an_object": [1] } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "c3", "content": "", "is_error": false, "cache_control": cache },
            ] },
        ],
    });
    assert_eq!(sent(of(&all(), "anthropic"), &conversation()), expected);
}

#[test]
fn responses_are_told_the_conversation() {
    let user = |text: &str| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] });
    let call = |id: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": "read", "arguments": arguments });
    let output = |id: &str, text: &str| json!({ "type": "function_call_output", "call_id": id, "output": text });
    let expected = json!({
        "model": "gpt-x", "stream": true, "store": false, "instructions": "be brief",
        "include": ["reasoning.encrypted_content"],
        "tools": [{
            "type": "function", "name": "read", "description": "Reads a file.",
            "parameters": schema(&["path"]), "strict": false,
        }],
        "input": [
            user("look"),
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
            call("c1", r#"{"path":"a"}"#),
            call("c2", r#"{"not_json":"{oops"}"#),
            output("c1", "text of a"),
            output("c2", "[the call failed]\nno such file"),
            user("go on"),
            call("c3", r#"{"not_an_object":[1]}"#),
            output("c3", ""),
        ],
    });
    assert_eq!(sent(of(&all(), "openai/"), &conversation()), expected);
}

#[test]
fn chats_are_told_the_conversation() {
    let call = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": arguments } });
    let output =
        |id: &str, text: &str| json!({ "role": "tool", "tool_call_id": id, "content": text });
    let wires = all();
    for (wire, model) in [("openai-chat", "gpt-x"), ("ollama", "llama-x:8b")] {
        let expected = json!({
            "model": model, "stream": true, "stream_options": { "include_usage": true },
            "tools": [{ "type": "function", "function": {
                "name": "read", "description": "Reads a file.", "parameters": schema(&["path"]),
            } }],
            "messages": [
                { "role": "system", "content": "be brief" },
                { "role": "user", "content": "look" },
                { "role": "assistant", "content": "I look.", "tool_calls": [
                    call("c1", r#"{"path":"a"}"#), call("c2", r#"{"not_json":"{oops"}"#),
                ] },
                output("c1", "text of a"),
                output("c2", "[the call failed]\nno such file"),
                { "role": "user", "content": "go on" },
                { "role": "assistant", "content": null, "tool_calls": [call("c3", r#"{"not_an_object":[1]}"#)] },
                output("c3", ""),
            ],
        });
        assert_eq!(sent(of(&wires, wire), &conversation()), expected, "{wire}");
    }
}

#[test]
fn gemini_is_told_the_conversation() {
    let call = |id: &str, arguments: Value| json!({ "id": id, "name": "read", "args": arguments });
    let expected = json!({
        "systemInstruction": { "parts": [{ "text": "be brief" }] },
        "tools": [{ "functionDeclarations": [{
            "name": "read", "description": "Reads a file.", "parametersJsonSchema": schema(&["path"]),
        }] }],
        "contents": [
            { "role": "user", "parts": [{ "text": "look" }] },
            { "role": "model", "parts": [
                { "text": "I look." },
                { "functionCall": call("c1", json!({ "path": "a" })), "thoughtSignature": "c2ln" },
                { "functionCall": call("c2", json!({ "not_json": "{oops" })) },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "id": "c1", "name": "read", "response": { "output": "text of a" } } },
                { "functionResponse": { "id": "c2", "name": "read", "response": { "error": "no such file" } } },
                { "text": "go on" },
            ] },
            { "role": "model", "parts": [
                {
                    "functionCall": call("c3", json!({ "not_an_object": [1] })),
                    "thoughtSignature": "skip_thought_signature_validator",
                },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "id": "c3", "name": "read", "response": { "output": "" } } },
            ] },
        ],
    });
    assert_eq!(sent(of(&all(), "gemini"), &conversation()), expected);
}
