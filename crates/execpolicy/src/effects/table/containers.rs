//! Containers and clusters.

use crate::effects::call::Call;
use crate::effects::inert;
use crate::effects::row::{Deed, On, Row};
use crate::effects::{Act, Effect};
use crate::shell::Word;

const RUNS: &[Deed] = &[Deed::Opaque];
const GONE: &[Deed] = &[Deed::Destroys];
/// Of a cluster that others may use.
const DEPLOYS: &[Deed] = &[Deed::Deploys];

pub(super) const ROWS: &[Row] = &[
    Row::of(&["docker", "podman", "nerdctl"])
        .values("Hlc")
        .longs(&[
            "host",
            "context",
            "log-level",
            "config",
            "tlscacert",
            "url",
            "connection",
        ])
        .on(&[
            ("H", On::With(Deed::Elsewhere)),
            ("host", On::With(Deed::Elsewhere)),
            ("config", On::Value),
        ])
        .subs(DOCKER),
    compose(&["docker-compose", "podman-compose"]),
    Row::of(&[
        "buildah",
        "kaniko",
        "skopeo",
        "crane",
        "dive",
        "ctr",
        "crictl",
        "lazydocker",
        "colima",
        "lima",
        "limactl",
        "multipass",
        "vagrant",
        "packer",
    ])
    .more(images),
    Row::of(&["kubectl", "oc", "k9s", "kubecolor", "microk8s"])
        .values("nsc")
        .longs(&[
            "namespace",
            "context",
            "cluster",
            "kubeconfig",
            "user",
            "server",
            "request-timeout",
            "as",
        ])
        .on(&[("token", On::Value)])
        .subs(KUBECTL),
    Row::of(&["helm"])
        .values("n")
        .longs(&["namespace", "kube-context", "kubeconfig"])
        .subs(&[
            Row::does(
                &[
                    "lint",
                    "template",
                    "list",
                    "ls",
                    "status",
                    "get",
                    "history",
                    "show",
                    "search",
                    "version",
                    "env",
                    "dependency",
                    "dep",
                    "package",
                    "create",
                    "pull",
                    "verify",
                    "repo",
                    "help",
                    "completion",
                ],
                &[Deed::Network],
            )
            .values("fn")
            .longs(&["values", "set", "namespace", "version", "output-dir"])
            .on(&[
                ("post-renderer", On::With(Deed::Code)),
                ("output-dir", On::Writes),
                ("d", On::Writes),
            ]),
            Row::does(
                &[
                    "install",
                    "upgrade",
                    "uninstall",
                    "delete",
                    "rollback",
                    "push",
                    "test",
                ],
                DEPLOYS,
            )
            .on(&[("dry-run", On::Inert(&inert::HELM))]),
            Row::does(&["plugin", "registry"], &[Deed::Code]),
        ]),
    Row::of(&[
        "kustomize",
        "kubeconform",
        "kubeval",
        "kubens",
        "kubectx",
        "stern",
        "kind",
        "minikube",
        "k3d",
        "skaffold",
        "tilt",
        "argocd",
        "flux",
        "istioctl",
        "cilium",
        "velero",
        "eksctl",
        "kops",
        "kubeadm",
    ])
    .more(clusters),
];

const DOCKER: &[Row] = &[
    Row::does(
        &[
            "ps",
            "images",
            "logs",
            "inspect",
            "version",
            "info",
            "stats",
            "top",
            "port",
            "diff",
            "events",
            "search",
            "history",
            "attach",
            "wait",
            "help",
            "df",
            "healthcheck",
        ],
        &[],
    ),
    Row::does(
        &[
            "pull", "start", "stop", "restart", "pause", "unpause", "rename", "tag", "kill",
        ],
        &[Deed::Network],
    ),
    Row::does(&["build", "buildx", "builder", "bake"], RUNS)
        .values("ftm")
        .longs(&[
            "file",
            "tag",
            "build-arg",
            "target",
            "platform",
            "progress",
            "cache-from",
            "cache-to",
            "label",
            "network",
            "output",
            "secret",
            "ssh",
            "iidfile",
            "shm-size",
        ])
        .on(&[
            ("iidfile", On::Writes),
            ("push", On::Does(Deed::Publishes)),
            ("o", On::With(Deed::Network)),
            ("secret", On::With(Deed::Network)),
            ("allow", On::With(Deed::Privilege)),
        ])
        .more(build),
    Row::of(&["run", "create"]).more(run),
    Row::of(&["exec"]).more(run),
    Row::does(&["rm", "rmi", "untag"], &[]).on(&[
        ("v", On::Does(Deed::Destroys)),
        ("volumes", On::Does(Deed::Destroys)),
    ]),
    Row::of(&["cp"]).more(copies),
    Row::does(&["save", "export"], &[]).on(&[("o", On::Writes), ("output", On::Writes)]),
    Row::does(&["load", "import", "commit"], &[]),
    Row::of(&["container", "image"]).subs(&[
        Row::does(
            &[
                "ls", "list", "ps", "inspect", "logs", "stats", "top", "port", "history", "pull",
                "start", "stop", "restart", "tag", "rm", "wait", "diff",
            ],
            &[],
        ),
        Row::does(&["prune"], GONE),
        Row::does(&["build"], RUNS).more(build),
        Row::of(&["run", "create"]).more(run),
        Row::of(&["exec"]).more(run),
        Row::of(&["cp"]).more(copies),
        Row::does(&["push"], &[Deed::Publishes]),
    ]),
    Row::of(&[
        "volume", "network", "context", "manifest", "plugin", "config", "node", "trust", "machine",
        "pod", "secret",
    ])
    .subs(&[
        Row::does(
            &[
                "ls",
                "list",
                "inspect",
                "create",
                "connect",
                "disconnect",
                "show",
                "info",
                "ps",
            ],
            &[],
        ),
        Row::does(
            &[
                "rm", "remove", "prune", "use", "update", "import", "export", "install", "enable",
                "push", "kill", "stop", "start", "init", "set",
            ],
            GONE,
        ),
    ]),
    Row::of(&["system"]).subs(&[
        Row::of(&["df", "info", "events"]),
        Row::does(&["prune", "reset", "dial-stdio"], GONE),
    ]),
    compose(&["compose"]),
    Row::does(&["push"], &[Deed::Publishes]),
    Row::does(&["login", "logout"], &[Deed::Secret]),
    Row::does(
        &[
            "swarm", "service", "stack", "update", "scout", "sbom", "init", "model", "mcp",
            "desktop", "unshare", "generate",
        ],
        &[Deed::Machine],
    ),
];

/// By itself, and as a part of `docker`.
const fn compose(names: &'static [&'static str]) -> Row {
    Row::of(names)
        .values("fp")
        .longs(&[
            "file",
            "project-name",
            "profile",
            "env-file",
            "project-directory",
        ])
        .subs(COMPOSE)
}

const COMPOSE: &[Row] = &[
    Row::does(
        &[
            "ps", "logs", "config", "images", "ls", "top", "port", "version", "events", "convert",
            "stats", "volumes",
        ],
        &[],
    ),
    Row::does(
        &[
            "up", "build", "start", "stop", "restart", "pull", "create", "pause", "unpause",
            "kill", "watch", "wait", "scale", "attach",
        ],
        RUNS,
    )
    .values("t")
    .longs(&["scale", "timeout"])
    .on(&[
        ("V", On::Does(Deed::Destroys)),
        ("renew-anon-volumes", On::Does(Deed::Destroys)),
    ]),
    Row::of(&["down", "rm"]).values("t").on(&[
        ("v", On::Does(Deed::Destroys)),
        ("volumes", On::Does(Deed::Destroys)),
        ("rmi", On::With(Deed::Network)),
    ]),
    Row::of(&["run"]).more(run),
    Row::of(&["exec"]).more(run),
    Row::of(&["cp"]).more(copies),
    Row::does(&["push", "publish"], &[Deed::Publishes]),
];

const KUBECTL: &[Row] = &[
    Row::does(
        &[
            "describe",
            "logs",
            "top",
            "version",
            "cluster-info",
            "api-resources",
            "api-versions",
            "explain",
            "diff",
            "wait",
            "events",
            "auth",
            "help",
            "completion",
            "kustomize",
            "options",
            "whoami",
            "projects",
            "status",
        ],
        &[Deed::Network],
    )
    .values("nlofcL"),
    Row::does(&["get"], &[Deed::Network])
        .values("nlofL")
        .more(secrets),
    Row::of(&["config"]).subs(&[
        Row::of(&[
            "current-context",
            "get-contexts",
            "get-clusters",
            "get-users",
        ]),
        Row::of(&["view"]).on(&[("raw", On::Does(Deed::Secret))]),
        Row::does(
            &[
                "use-context",
                "set-context",
                "set",
                "unset",
                "set-cluster",
                "set-credentials",
                "delete-context",
                "delete-cluster",
                "delete-user",
                "rename-context",
            ],
            &[Deed::Elsewhere],
        ),
    ]),
    Row::of(&["rollout"]).subs(&[
        Row::does(&["status", "history"], &[Deed::Network]),
        Row::does(&["restart", "undo", "pause", "resume"], DEPLOYS),
    ]),
    Row::of(&["port-forward", "proxy"]),
    Row::does(
        &["exec", "cp", "attach", "debug", "run"],
        &[Deed::Elsewhere],
    ),
    Row::does(
        &[
            "apply",
            "create",
            "delete",
            "replace",
            "patch",
            "edit",
            "scale",
            "set",
            "label",
            "annotate",
            "drain",
            "cordon",
            "uncordon",
            "taint",
            "expose",
            "autoscale",
            "certificate",
            "new-app",
            "new-project",
            "adm",
        ],
        DEPLOYS,
    )
    .on(&[("dry-run", On::Inert(&inert::KUBECTL))]),
];

/// A container's secret mount or a whole context; building reads what lies below.
fn build(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(
        call.operands
            .iter()
            .filter(|word| !word.text.contains("://"))
            .map(|word| Effect::File(Act::ReadBelow, (*word).clone())),
    );
    if matches!(call.operand(0), Some("prune" | "rm")) {
        out.push(Effect::Deed(Deed::Destroys));
    }
}

/// Options of `run` that take a word.
const VALUES: &[&str] = &[
    "-a",
    "-c",
    "-e",
    "-h",
    "-l",
    "-m",
    "-p",
    "-u",
    "-v",
    "-w",
    "--add-host",
    "--annotation",
    "--attach",
    "--blkio-weight",
    "--cap-add",
    "--cap-drop",
    "--cgroup-parent",
    "--cgroupns",
    "--cidfile",
    "--cpu-shares",
    "--cpus",
    "--cpuset-cpus",
    "--device",
    "--dns",
    "--entrypoint",
    "--env",
    "--env-file",
    "--expose",
    "--gpus",
    "--group-add",
    "--health-cmd",
    "--hostname",
    "--ip",
    "--ipc",
    "--isolation",
    "--label",
    "--link",
    "--log-driver",
    "--log-opt",
    "--memory",
    "--mount",
    "--name",
    "--net",
    "--network",
    "--network-alias",
    "--pid",
    "--pids-limit",
    "--platform",
    "--publish",
    "--pull",
    "--restart",
    "--runtime",
    "--security-opt",
    "--shm-size",
    "--stop-signal",
    "--stop-timeout",
    "--storage-opt",
    "--sysctl",
    "--tmpfs",
    "--ulimit",
    "--user",
    "--userns",
    "--uts",
    "--volume",
    "--volumes-from",
    "--workdir",
    "--index",
    "--detach-keys",
];

/// The words behind the options, with what the options lend to what runs.
fn inside(call: &Call<'_>, out: &mut Vec<Effect>) -> Vec<Word> {
    let mut at = 1;
    let mut entry = None;
    while let Some(word) = call.words.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        let name = text.split('=').next().unwrap_or(text);
        let short = !text.starts_with("--") && text.len() > 2;
        let last = text.get(text.len() - 1..).unwrap_or("");
        let letter = if short { last } else { "" };
        let attached = text.starts_with("-v")
            || text.starts_with("-e")
            || text.starts_with("-p")
            || text.starts_with("-u")
            || text.starts_with("-w");
        let value = if name.len() < text.len() && text.starts_with("--") {
            word.after('=')
        } else if VALUES.contains(&text) {
            at += 1;
            call.words.get(at).cloned()
        } else if short && attached {
            Some(word.from(2))
        } else if short && "vepuwhmlac".contains(letter) {
            at += 1;
            call.words.get(at).cloned()
        } else {
            None
        };
        let short_name = if short && !attached {
            letter
        } else {
            name.get(1..2).unwrap_or("")
        };
        match name {
            "--privileged" | "--cap-add" | "--device" | "--security-opt" | "--pid" | "--userns"
            | "--ipc" | "--uts" | "--cgroupns" | "--volumes-from" | "--runtime" => {
                let host = value.as_ref().is_none_or(|word| {
                    name != "--ipc" && name != "--uts" || word.text.contains("host")
                });
                if host {
                    out.push(Effect::Deed(Deed::Privilege));
                }
            }
            "--volume" => mount(value.as_ref(), out),
            "--mount" => {
                let source = value
                    .as_ref()
                    .map_or("", |word| word.text.as_str())
                    .split(',')
                    .find_map(|part| {
                        let part = part.trim_matches('"');
                        part.strip_prefix("source=")
                            .or_else(|| part.strip_prefix("src="))
                    });
                if let Some(source) = source {
                    mount(Some(&Word::fixed(format!("{source}:/x"))), out);
                }
            }
            "--entrypoint" => entry = value,
            "--device-cgroup-rule" => out.push(Effect::Deed(Deed::Privilege)),
            "--env-file" => out.extend(value.map(|word| Effect::File(Act::Use, word))),
            "--cidfile" => out.extend(value.map(|word| Effect::File(Act::Write, word))),
            "--restart" if value.as_ref().is_none_or(|word| word.text != "no") => {
                out.push(Effect::Deed(Deed::Persists));
            }
            _ if !text.starts_with("--") && short_name == "v" => mount(value.as_ref(), out),
            _ => {}
        }
        at += 1;
    }
    let mut rest = call.words.get(at..).unwrap_or(&[]).to_vec();
    // The image stands first.
    if let Some(entry) = entry {
        rest.insert(rest.len().min(1), entry);
    }
    rest
}

/// A folder of this machine that what runs inside can write.
fn mount(value: Option<&Word>, out: &mut Vec<Effect>) {
    let Some(value) = value else { return };
    let Some((source, _)) = value.text.split_once(':') else {
        return;
    };
    // A name without a slash is a volume.
    if !source.contains('/') && !source.starts_with(['.', '~', '$']) {
        return;
    }
    let mut source_word = value.clone();
    source_word = source_word.cut(source.len());
    let read_only = value.text.ends_with(":ro");
    out.push(Effect::File(
        if read_only {
            Act::ReadBelow
        } else {
            Act::WriteBelow
        },
        source_word,
    ));
}

/// `run IMAGE COMMAND`, `exec CONTAINER COMMAND`.
fn run(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Opaque));
    let rest = inside(call, out);
    let command = rest.get(1..).unwrap_or(&[]).to_vec();
    if !command.is_empty() {
        out.push(Effect::Inside(command));
    }
}

fn copies(call: &Call<'_>, out: &mut Vec<Effect>) {
    let inner = |word: &Word| {
        word.text
            .split_once(':')
            .is_some_and(|(name, _)| !name.contains('/'))
    };
    let Some((target, sources)) = call.operands.split_last() else {
        return;
    };
    out.extend(
        sources
            .iter()
            .filter(|word| !inner(word))
            .map(|word| Effect::File(Act::ReadBelow, (*word).clone())),
    );
    if !inner(target) {
        out.push(Effect::File(Act::Write, (*target).clone()));
        out.push(Effect::PutInto(
            (*target).clone(),
            sources.iter().map(|word| (*word).clone()).collect(),
        ));
    }
}

fn secrets(call: &Call<'_>, out: &mut Vec<Effect>) {
    let what = call.operand(0).unwrap_or("");
    if what
        .split([',', '/'])
        .any(|kind| matches!(kind, "secret" | "secrets" | "all-secrets"))
        && call.has(&["o", "output"])
    {
        out.push(Effect::Deed(Deed::Secret));
    }
}

fn images(call: &Call<'_>, out: &mut Vec<Effect>) {
    match call.operand(0) {
        None
        | Some(
            "version" | "list" | "ls" | "ps" | "images" | "inspect" | "status" | "info"
            | "global-status" | "manifest" | "digest" | "list-tags" | "validate" | "fmt" | "pull",
        ) => {}
        Some("up" | "start" | "stop" | "halt" | "bud" | "build" | "reload") => {
            out.push(Effect::Deed(Deed::Opaque))
        }
        Some(_) => out.push(Effect::Deed(Deed::Destroys)),
    }
}

fn clusters(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    if matches!(
        name,
        "kubeconform" | "kubeval" | "stern" | "kubens" | "kubectx"
    ) && call.operands.len() <= 1
    {
        return;
    }
    match (call.operand(0), call.operand(1)) {
        (
            None
            | Some(
                "build" | "version" | "status" | "list" | "get" | "check" | "logs" | "ip"
                | "profile" | "service" | "describe" | "diff" | "help",
            ),
            _,
        ) => {}
        (
            Some("app" | "cluster" | "node" | "addons"),
            Some("list" | "get" | "diff" | "history"),
        ) => {}
        (
            Some("start" | "stop" | "pause" | "image" | "dev" | "run" | "up" | "ci" | "render"),
            _,
        ) => out.push(Effect::Deed(Deed::Opaque)),
        (Some("create"), Some("cluster")) | (Some("cluster"), Some("create")) => {
            out.push(Effect::Deed(Deed::Opaque))
        }
        _ => out.push(Effect::Deed(Deed::Destroys)),
    }
}
