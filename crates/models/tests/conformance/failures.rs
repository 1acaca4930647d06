//! What goes wrong on the way: how often it is asked again, how long is waited, and what is told.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use checkrein_models::{
    LanguageModel, ModelError, ModelReply, ModelRequestLimits, RemoteModel, block_on,
};
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::server::{AfterAnswer, ModelServer, PATIENCE, ServerAnswer};
use crate::wires::{KEY, WireFixture, all};
use crate::{LIMITS, ask, question, said};

fn good(wire: &WireFixture) -> ServerAnswer {
    ServerAnswer::stream(&(wire.say)(&said()))
}

fn error(status: &str, headers: &str) -> ServerAnswer {
    let body = json!({ "error": { "message": "not now" } });
    ServerAnswer::error(status, headers, &body)
}

fn asked(
    wire: &WireFixture,
    limits: ModelRequestLimits,
    answers: Vec<ServerAnswer>,
) -> (Result<ModelReply, ModelError>, ModelServer) {
    ask(wire, &question(), limits, answers)
}

#[test]
fn busy_is_waited_for_as_long_as_it_says() {
    for wire in all() {
        let answers = vec![
            error("429 Too Many Requests", "retry-after-ms: 150\r\n"),
            good(&wire),
        ];
        let (reply, server) = asked(&wire, LIMITS, answers);
        assert_eq!(reply.unwrap().text, "It is döne.\n", "{}", wire.name);
        assert_eq!(server.requests(), 2, "{}", wire.name);
        let waited = server.seen(|seen| seen[1].at - seen[0].at);
        assert!(
            waited >= Duration::from_millis(150),
            "{}: {waited:?}",
            wire.name
        );
        // The second request is the first again.
        server.seen(|seen| assert_eq!(seen[0].body, seen[1].body));
    }
}

#[test]
fn a_date_is_a_wait_as_well() {
    let wire = &all()[0];
    let answers = vec![
        error(
            "429 Too Many Requests",
            "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        ),
        good(wire),
    ];
    let (reply, server) = asked(wire, LIMITS, answers);
    assert!(reply.is_ok());
    assert_eq!(server.requests(), 2);
    // In a year that is far from over when the time limit is.
    let answers = vec![
        error("503 No", "retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n"),
        good(wire),
    ];
    let (reply, server) = asked(wire, LIMITS, answers);
    assert!(
        matches!(reply, Err(ModelError::Busy { status: 503, .. })),
        "{reply:?}"
    );
    assert_eq!(server.requests(), 1);
}

#[test]
fn a_wait_that_is_too_long_is_said_at_once() {
    for wire in all() {
        let answers = vec![
            error("429 Too Many Requests", "retry-after: 3600\r\n"),
            good(&wire),
        ];
        let begun = Instant::now();
        let (reply, server) = asked(&wire, LIMITS, answers);
        assert!(begun.elapsed() < LIMITS.total_timeout);
        let after = Some(Duration::from_secs(3600));
        match reply {
            Err(ModelError::Busy {
                status: 429,
                after: told,
                what,
                ..
            }) => assert_eq!((told, what.as_str()), (after, "not now")),
            other => panic!("{}: {other:?}", wire.name),
        }
        assert_eq!(server.requests(), 1, "{}", wire.name);
    }
}

#[test]
fn two_faults_of_the_server_are_got_over() {
    for wire in all() {
        let fault = || error("500 Internal Server Error", "");
        let (reply, server) = asked(
            &wire,
            LIMITS,
            vec![fault(), error("529 Overloaded", ""), good(&wire)],
        );
        assert!(reply.is_ok(), "{}: {reply:?}", wire.name);
        assert_eq!(server.requests(), 3, "{}", wire.name);
        // And not more than that.
        let (reply, server) = asked(&wire, LIMITS, vec![fault(), fault(), fault(), good(&wire)]);
        assert!(
            matches!(reply, Err(ModelError::Busy { status: 500, .. })),
            "{}: {reply:?}",
            wire.name
        );
        assert_eq!(server.requests(), 3, "{}", wire.name);
    }
}

#[test]
fn a_line_that_is_cut_before_the_answer_is_tried_again() {
    for wire in all() {
        let answers = vec![
            ServerAnswer::nothing(AfterAnswer::Drop),
            ServerAnswer::stream(&[]).then(AfterAnswer::Drop),
            good(&wire),
        ];
        let (reply, server) = asked(&wire, LIMITS, answers);
        assert!(reply.is_ok(), "{}: {reply:?}", wire.name);
        assert_eq!(server.requests(), 3, "{}", wire.name);
    }
}

#[test]
fn overload_is_waited_for_only_before_the_answer() {
    for wire in all() {
        let event = format!("data: {}\n\n", wire.overloaded);
        let answers = vec![
            ServerAnswer::stream(std::slice::from_ref(&event)),
            good(&wire),
        ];
        let (reply, server) = asked(&wire, LIMITS, answers);
        assert!(reply.is_ok(), "{}: {reply:?}", wire.name);
        assert_eq!(server.requests(), 2, "{}", wire.name);

        let mut late = begun(&wire);
        late.push(event);
        let (reply, server) = asked(
            &wire,
            LIMITS,
            vec![ServerAnswer::stream(&late), good(&wire)],
        );
        assert!(
            matches!(reply, Err(ModelError::Busy { .. })),
            "{}: {reply:?}",
            wire.name
        );
        assert_eq!(server.requests(), 1, "{}", wire.name);
    }
}

/// The beginning of an answer, some of its text included.
fn begun(wire: &WireFixture) -> Vec<String> {
    let mut events = (wire.say)(&said());
    let first = events
        .iter()
        .position(|event| event.contains("It is "))
        .unwrap();
    events.truncate(first + 1);
    events
}

#[test]
fn an_answer_that_breaks_off_is_none_and_is_not_asked_for_again() {
    for wire in all() {
        for then in [AfterAnswer::Drop, AfterAnswer::End] {
            let answers = vec![ServerAnswer::stream(&begun(&wire)).then(then), good(&wire)];
            let (reply, server) = asked(&wire, LIMITS, answers);
            assert!(
                matches!(reply, Err(ModelError::Connection { .. })),
                "{}: {reply:?}",
                wire.name
            );
            assert_eq!(server.requests(), 1, "{}", wire.name);
        }
    }
}

#[test]
fn what_is_refused_is_not_asked_again_and_the_key_is_not_told() {
    for wire in all() {
        for status in [400, 401, 403, 404, 422] {
            let body = json!({ "error": { "message": format!("Incorrect key: {KEY}\n.") } });
            let answer = ServerAnswer::error(&format!("{status} No"), "", &body);
            let (reply, server) = asked(&wire, LIMITS, vec![answer, good(&wire)]);
            let error = reply.unwrap_err();
            match &error {
                ModelError::Refused {
                    status: told, what, ..
                } => {
                    assert_eq!((*told, what.as_str()), (status, "Incorrect key: [key] ."));
                }
                other => panic!("{}: {other:?}", wire.name),
            }
            assert!(!format!("{error} {error:?}").contains(KEY), "{}", wire.name);
            assert_eq!(server.requests(), 1, "{}", wire.name);
        }
    }
}

#[test]
fn an_account_without_money_is_not_waited_for() {
    let wire = &all()[1];
    let body = json!({ "error": { "code": "insufficient_quota", "message": "check your plan" } });
    let answer = ServerAnswer::error("429 Too Many Requests", "", &body);
    let (reply, server) = asked(wire, LIMITS, vec![answer, good(wire)]);
    assert!(
        matches!(reply, Err(ModelError::Refused { status: 429, .. })),
        "{reply:?}"
    );
    assert_eq!(server.requests(), 1);
}

#[test]
fn silence_has_a_limit_wherever_it_falls() {
    let limits = ModelRequestLimits {
        idle_timeout: Duration::from_millis(200),
        ..LIMITS
    };
    for wire in all() {
        for answer in [
            ServerAnswer::nothing(AfterAnswer::Stall),
            ServerAnswer::stream(&[]).then(AfterAnswer::Stall),
            ServerAnswer::stream(&begun(&wire)).then(AfterAnswer::Stall),
            // In the middle of a word.
            ServerAnswer::stream(&["data: {\"ty".to_owned()]).then(AfterAnswer::Stall),
        ] {
            let (reply, server) = asked(&wire, limits, vec![answer, good(&wire)]);
            let expected = ModelError::Timeout {
                provider: wire.name.split('/').next().unwrap().to_owned(),
                limit: limits.idle_timeout,
            };
            assert_eq!(reply, Err(expected), "{}", wire.name);
            server.gone.recv_timeout(PATIENCE).unwrap();
            assert_eq!(server.requests(), 1, "{}", wire.name);
        }
    }
}

#[test]
fn a_drip_that_never_ends_has_a_limit_too() {
    let limits = ModelRequestLimits {
        total_timeout: Duration::from_millis(400),
        ..LIMITS
    };
    for wire in all() {
        let drip = AfterAnswer::Again(": wait\n\n", Duration::from_millis(10));
        let answer = ServerAnswer::stream(&begun(&wire)).then(drip);
        let (reply, server) = asked(&wire, limits, vec![answer]);
        assert!(
            matches!(&reply, Err(ModelError::Timeout { limit, .. }) if *limit == limits.total_timeout),
            "{}: {reply:?}",
            wire.name
        );
        server.gone.recv_timeout(PATIENCE).unwrap();
    }
}

#[test]
fn what_is_too_large_is_cut_while_it_comes() {
    let limits = ModelRequestLimits {
        bytes: 64 * 1024,
        ..LIMITS
    };
    for wire in all() {
        for endless in [": more and more\n\n", "data: without an end of line "] {
            let endless = AfterAnswer::Again(endless, Duration::ZERO);
            let answer = ServerAnswer::stream(&begun(&wire)).then(endless);
            let (reply, server) = asked(&wire, limits, vec![answer]);
            assert!(
                matches!(reply, Err(ModelError::TooLarge { limit: 65_536, .. })),
                "{}: {reply:?}",
                wire.name
            );
            server.gone.recv_timeout(PATIENCE).unwrap();
        }
        // An error's body as well, of which the beginning is told.
        let endless = AfterAnswer::Again("no no no no no no no no no no ", Duration::ZERO);
        let answer = ServerAnswer::error("400 Bad", "", &json!("never")).then(endless);
        let (reply, server) = asked(&wire, limits, vec![answer]);
        match reply {
            Err(ModelError::Refused { what, .. }) => {
                assert!(what.contains("no no") && what.len() < 600, "{what}");
            }
            other => panic!("{}: {other:?}", wire.name),
        }
        server.gone.recv_timeout(PATIENCE).unwrap();
    }
}

#[test]
fn what_is_no_answer_of_the_format_is_said() {
    for wire in all() {
        let mut late = begun(&wire);
        late.push(wire.malformed.to_owned());
        for events in [
            vec![wire.malformed.to_owned()],
            late,
            vec!["<html><body>Sign in</body></html>\n".to_owned()],
            vec!["{\"id\": \"whole\", \"choices\": []}\n".to_owned()],
            vec!["data: \"a text\"\n\n".to_owned()],
        ] {
            let (reply, server) = asked(
                &wire,
                LIMITS,
                vec![ServerAnswer::stream(&events), good(&wire)],
            );
            assert!(
                matches!(reply, Err(ModelError::Unreadable { .. })),
                "{} {events:?}: {reply:?}",
                wire.name
            );
            assert_eq!(server.requests(), 1, "{}", wire.name);
        }
    }
}

#[test]
fn a_redirect_does_not_get_the_key() {
    for wire in all() {
        let elsewhere = ModelServer::start(vec![good(&wire)]);
        let location = format!("location: {}/v1\r\n", elsewhere.base);
        let answer = error("307 Temporary Redirect", &location);
        let (reply, _server) = asked(&wire, LIMITS, vec![answer]);
        assert!(
            matches!(reply, Err(ModelError::Refused { status: 307, .. })),
            "{}: {reply:?}",
            wire.name
        );
        assert_eq!(elsewhere.requests(), 0, "{}", wire.name);
    }
}

#[test]
fn whoever_stops_waiting_stops_the_request() {
    for wire in all() {
        let server = ModelServer::start(vec![
            ServerAnswer::stream(&begun(&wire)).then(AfterAnswer::Stall),
        ]);
        let model = RemoteModel::new(wire.name, &wire.environment(&server.base), LIMITS).unwrap();
        let (was_asked, has_gone) = (server.asked, server.gone);
        let request = question();
        let executor = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        executor.block_on(async {
            let mut asked = model.ask_model(&request);
            let mut read = spawn_blocking(move || was_asked.recv_timeout(PATIENCE));
            let until_read = poll_fn(|context| {
                let turn = asked.as_mut().poll(context);
                assert!(turn.is_pending(), "{}: {turn:?}", wire.name);
                pin!(&mut read).poll(context)
            });
            until_read.await.unwrap().unwrap();
            drop(asked);
            // The connection is closed by its own task, which runs here.
            let closed = spawn_blocking(move || has_gone.recv_timeout(PATIENCE));
            closed.await.unwrap().unwrap();
        });
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor there is.
fn drive<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn any_executor_can_wait_and_can_stop() {
    for wire in all() {
        let server =
            ModelServer::start(vec![good(&wire), ServerAnswer::nothing(AfterAnswer::Stall)]);
        let model = RemoteModel::new(wire.name, &wire.environment(&server.base), LIMITS).unwrap();
        let request = question();
        assert_eq!(
            drive(model.ask_model(&request)).unwrap().text,
            "It is döne.\n"
        );
        server.asked.recv_timeout(PATIENCE).unwrap();
        let mut asked = model.ask_model(&request);
        let polled = asked.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        server.asked.recv_timeout(PATIENCE).unwrap();
        drop(asked);
        server.gone.recv_timeout(PATIENCE).unwrap();
    }
}

#[test]
fn many_ask_at_once() {
    let wire = &all()[2];
    let server = ModelServer::start(vec![good(wire); 32]);
    let model = RemoteModel::new(wire.name, &wire.environment(&server.base), LIMITS).unwrap();
    let request = question();
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                assert_eq!(
                    block_on(model.ask_model(&request)).unwrap().text,
                    "It is döne.\n"
                )
            });
        }
    });
    assert_eq!(server.requests(), 32);
}

#[test]
fn nobody_there_is_said_after_some_tries() {
    let wire = &all()[0];
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let model = RemoteModel::new(wire.name, &wire.environment(&base), LIMITS).unwrap();
    let error = block_on(model.ask_model(&question())).unwrap_err();
    assert!(matches!(error, ModelError::Connection { .. }), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn tls_is_spoken_and_its_failure_said() {
    let wire = &all()[0];
    let server = ModelServer::start(vec![]);
    let base = server.base.replace("http:", "https:");
    let limits = ModelRequestLimits { tries: 1, ..LIMITS };
    let model = RemoteModel::new(wire.name, &wire.environment(&base), limits).unwrap();
    let reply = block_on(model.ask_model(&question()));
    assert!(
        matches!(reply, Err(ModelError::Connection { .. })),
        "{reply:?}"
    );
    // Nothing came that could be read.
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_proxy_is_used_for_others_and_not_for_this_machine() {
    let wire = &all()[0];
    let proxy = ModelServer::start(vec![good(wire)]);
    let mut environment = wire.environment("http://models.invalid");
    environment.insert("http_proxy".into(), proxy.base.clone().into());
    let model = RemoteModel::new(wire.name, &environment, LIMITS).unwrap();
    block_on(model.ask_model(&question())).unwrap();
    proxy.seen(|seen| assert_eq!(seen[0].target, "http://models.invalid/v1/messages"));

    let server = ModelServer::start(vec![good(wire)]);
    let mut environment = wire.environment(&server.base);
    environment.insert("http_proxy".into(), proxy.base.clone().into());
    let model = RemoteModel::new(wire.name, &environment, LIMITS).unwrap();
    block_on(model.ask_model(&question())).unwrap();
    assert_eq!((proxy.requests(), server.requests()), (1, 1));
}

#[test]
fn without_a_key_nobody_is_asked() {
    let wire = &all()[0];
    let server = ModelServer::start(vec![good(wire)]);
    let environment = BTreeMap::from([("ANTHROPIC_BASE_URL".into(), server.base.clone().into())]);
    let model = RemoteModel::new(wire.name, &environment, LIMITS).unwrap();
    let error = block_on(model.ask_model(&question())).unwrap_err();
    assert!(matches!(error, ModelError::NoKey { .. }), "{error:?}");
    assert!(
        error.to_string().contains("set ANTHROPIC_API_KEY"),
        "{error}"
    );
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_model_at_home_needs_no_key() {
    let wires = all();
    let wire = wires.last().unwrap();
    let server = ModelServer::start(vec![good(wire)]);
    let environment = BTreeMap::from([("OLLAMA_HOST".into(), server.base.clone().into())]);
    let model = RemoteModel::new(wire.name, &environment, LIMITS).unwrap();
    block_on(model.ask_model(&question())).unwrap();
    server.seen(|seen| assert_eq!(seen[0].header("authorization"), None));
}
