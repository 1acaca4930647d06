//! Describes programs for containers and clusters. What runs in a container is judged there;
//! options that let it reach the host, and the removal of volumes, are judged here.

use crate::effects::inert;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::CommandWord;

const RUNS: &[NonFileEffectKind] = &[NonFileEffectKind::Opaque];
const GONE: &[NonFileEffectKind] = &[NonFileEffectKind::DestroysData];
/// Changes to a cluster that others may use.
const DEPLOYS: &[NonFileEffectKind] = &[NonFileEffectKind::Deploys];

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&["docker", "podman", "nerdctl"])
        .with_short_value_options("Hlc")
        .with_long_value_options(&[
            "host",
            "context",
            "log-level",
            "config",
            "tlscacert",
            "url",
            "connection",
        ])
        .with_option_meanings(&[
            // Another daemon, which mostly runs on another machine.
            (
                "H",
                OptionMeaning::ValueEffect(NonFileEffectKind::RemoteExecution),
            ),
            (
                "host",
                OptionMeaning::ValueEffect(NonFileEffectKind::RemoteExecution),
            ),
            ("config", OptionMeaning::Value),
        ])
        .with_subcommands(DOCKER),
    docker_compose_spec(&["docker-compose", "podman-compose"]),
    ProgramEffectSpec::new(&[
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
    .with_extra_effects_fn(vm_and_image_tool_effects),
    ProgramEffectSpec::new(&["kubectl", "oc", "k9s", "kubecolor", "microk8s"])
        .with_short_value_options("nsc")
        .with_long_value_options(&[
            "namespace",
            "context",
            "cluster",
            "kubeconfig",
            "user",
            "server",
            "request-timeout",
            "as",
        ])
        .with_option_meanings(&[("token", OptionMeaning::Value)])
        .with_subcommands(KUBECTL),
    ProgramEffectSpec::new(&["helm"])
        .with_short_value_options("n")
        .with_long_value_options(&["namespace", "kube-context", "kubeconfig"])
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
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
                &[NonFileEffectKind::Network],
            )
            .with_short_value_options("fn")
            .with_long_value_options(&["values", "set", "namespace", "version", "output-dir"])
            .with_option_meanings(&[
                (
                    // A program through which Helm passes the manifests.
                    "post-renderer",
                    OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
                ),
                ("output-dir", OptionMeaning::Writes),
                ("d", OptionMeaning::Writes),
            ]),
            ProgramEffectSpec::program_spec_with_fixed_effects(
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
            .with_option_meanings(&[("dry-run", OptionMeaning::Inert(&inert::HELM))]),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                // A Helm plugin is a program, and may have install hooks.
                &["plugin", "registry"],
                &[NonFileEffectKind::UnreadableCode],
            ),
        ]),
    ProgramEffectSpec::new(&[
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
    .with_extra_effects_fn(kubernetes_tool_effects),
];

const DOCKER: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "pull", "start", "stop", "restart", "pause", "unpause", "rename", "tag", "kill",
        ],
        &[NonFileEffectKind::Network],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["build", "buildx", "builder", "bake"],
        RUNS,
    )
    .with_short_value_options("ftm")
    .with_long_value_options(&[
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
    .with_option_meanings(&[
        ("iidfile", OptionMeaning::Writes),
        // `docker build --push` publishes the image at once.
        (
            "push",
            OptionMeaning::FlagEffect(NonFileEffectKind::Publishes),
        ),
        ("o", OptionMeaning::ValueEffect(NonFileEffectKind::Network)),
        (
            "secret",
            OptionMeaning::ValueEffect(NonFileEffectKind::Network),
        ),
        // Grants the build entitlements such as the network of the host.
        (
            "allow",
            OptionMeaning::ValueEffect(NonFileEffectKind::Privilege),
        ),
    ])
    .with_extra_effects_fn(image_build_effects),
    ProgramEffectSpec::new(&["run", "create"]).with_extra_effects_fn(container_run_effects),
    ProgramEffectSpec::new(&["exec"]).with_extra_effects_fn(container_run_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["rm", "rmi", "untag"], &[])
        .with_option_meanings(&[
            // Containers can be made again; the data in their volumes cannot.
            (
                "v",
                OptionMeaning::FlagEffect(NonFileEffectKind::DestroysData),
            ),
            (
                "volumes",
                OptionMeaning::FlagEffect(NonFileEffectKind::DestroysData),
            ),
        ]),
    ProgramEffectSpec::new(&["cp"]).with_extra_effects_fn(container_copy_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["save", "export"], &[])
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
        ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["load", "import", "commit"], &[]),
    ProgramEffectSpec::new(&["container", "image"]).with_subcommands(&[
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &[
                "ls", "list", "ps", "inspect", "logs", "stats", "top", "port", "history", "pull",
                "start", "stop", "restart", "tag", "rm", "wait", "diff",
            ],
            &[],
        ),
        ProgramEffectSpec::program_spec_with_fixed_effects(&["prune"], GONE),
        ProgramEffectSpec::program_spec_with_fixed_effects(&["build"], RUNS)
            .with_extra_effects_fn(image_build_effects),
        ProgramEffectSpec::new(&["run", "create"]).with_extra_effects_fn(container_run_effects),
        ProgramEffectSpec::new(&["exec"]).with_extra_effects_fn(container_run_effects),
        ProgramEffectSpec::new(&["cp"]).with_extra_effects_fn(container_copy_effects),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["push"],
            &[NonFileEffectKind::Publishes],
        ),
    ]),
    ProgramEffectSpec::new(&[
        "volume", "network", "context", "manifest", "plugin", "config", "node", "trust", "machine",
        "pod", "secret",
    ])
    .with_subcommands(&[
        ProgramEffectSpec::program_spec_with_fixed_effects(
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
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &[
                "rm", "remove", "prune", "use", "update", "import", "export", "install", "enable",
                "push", "kill", "stop", "start", "init", "set",
            ],
            GONE,
        ),
    ]),
    ProgramEffectSpec::new(&["system"]).with_subcommands(&[
        ProgramEffectSpec::new(&["df", "info", "events"]),
        ProgramEffectSpec::program_spec_with_fixed_effects(&["prune", "reset", "dial-stdio"], GONE),
    ]),
    docker_compose_spec(&["compose"]),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["push"], &[NonFileEffectKind::Publishes]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["login", "logout"],
        &[NonFileEffectKind::ExposesSecret],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "swarm", "service", "stack", "update", "scout", "sbom", "init", "model", "mcp",
            "desktop", "unshare", "generate",
        ],
        &[NonFileEffectKind::ChangesMachine],
    ),
];

/// Returns the row of Compose, which is a program and a sub-command of `docker`.
const fn docker_compose_spec(names: &'static [&'static str]) -> ProgramEffectSpec {
    ProgramEffectSpec::new(names)
        .with_short_value_options("fp")
        .with_long_value_options(&[
            "file",
            "project-name",
            "profile",
            "env-file",
            "project-directory",
        ])
        .with_subcommands(COMPOSE)
}

const COMPOSE: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "ps", "logs", "config", "images", "ls", "top", "port", "version", "events", "convert",
            "stats", "volumes",
        ],
        &[],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "up", "build", "start", "stop", "restart", "pull", "create", "pause", "unpause",
            "kill", "watch", "wait", "scale", "attach",
        ],
        RUNS,
    )
    .with_short_value_options("t")
    .with_long_value_options(&["scale", "timeout"])
    .with_option_meanings(&[
        // Anonymous volumes are made anew, and their data is lost.
        (
            "V",
            OptionMeaning::FlagEffect(NonFileEffectKind::DestroysData),
        ),
        (
            "renew-anon-volumes",
            OptionMeaning::FlagEffect(NonFileEffectKind::DestroysData),
        ),
    ]),
    ProgramEffectSpec::new(&["down", "rm"])
        .with_short_value_options("t")
        .with_option_meanings(&[
            (
                "v",
                OptionMeaning::FlagEffect(NonFileEffectKind::DestroysData),
            ),
            (
                "volumes",
                OptionMeaning::FlagEffect(NonFileEffectKind::DestroysData),
            ),
            (
                "rmi",
                OptionMeaning::ValueEffect(NonFileEffectKind::Network),
            ),
        ]),
    ProgramEffectSpec::new(&["run"]).with_extra_effects_fn(container_run_effects),
    ProgramEffectSpec::new(&["exec"]).with_extra_effects_fn(container_run_effects),
    ProgramEffectSpec::new(&["cp"]).with_extra_effects_fn(container_copy_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["push", "publish"],
        &[NonFileEffectKind::Publishes],
    ),
];

const KUBECTL: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
        &[NonFileEffectKind::Network],
    )
    .with_short_value_options("nlofcL"),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["get"], &[NonFileEffectKind::Network])
        .with_short_value_options("nlofL")
        .with_extra_effects_fn(kubectl_get_effects),
    ProgramEffectSpec::new(&["config"]).with_subcommands(&[
        ProgramEffectSpec::new(&[
            "current-context",
            "get-contexts",
            "get-clusters",
            "get-users",
        ]),
        ProgramEffectSpec::new(&["view"])
            // `--raw` prints keys and tokens that are hidden otherwise.
            .with_option_meanings(&[(
                "raw",
                OptionMeaning::FlagEffect(NonFileEffectKind::ExposesSecret),
            )]),
        ProgramEffectSpec::program_spec_with_fixed_effects(
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
            &[NonFileEffectKind::RemoteExecution],
        ),
    ]),
    ProgramEffectSpec::new(&["rollout"]).with_subcommands(&[
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["status", "history"],
            &[NonFileEffectKind::Network],
        ),
        ProgramEffectSpec::program_spec_with_fixed_effects(
            &["restart", "undo", "pause", "resume"],
            DEPLOYS,
        ),
    ]),
    ProgramEffectSpec::new(&["port-forward", "proxy"]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        // All of these run something in the cluster or copy from or to it.
        &["exec", "cp", "attach", "debug", "run"],
        &[NonFileEffectKind::RemoteExecution],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
    .with_option_meanings(&[("dry-run", OptionMeaning::Inert(&inert::KUBECTL))]),
];

/// Adds that a build reads everything below its context, and that pruning the cache removes data.
fn image_build_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.extend(
        call.operands
            .iter()
            .filter(|word| !word.text.contains("://"))
            .map(|word| CommandEffect::File(FileAccess::ReadBelow, (*word).clone())),
    );
    // `docker builder prune` and `docker buildx rm` share this row.
    if matches!(call.literal_operand(0), Some("prune" | "rm")) {
        out.push(CommandEffect::Kind(NonFileEffectKind::DestroysData));
    }
}

/// Options of `docker run` and its like that take a word.
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

/// Parses the options of `run` and `exec`, adds what they let the container do to the host, and
/// returns the words behind them: the image or container, then the command.
fn parse_container_options(
    call: &ParsedArgs<'_>,
    out: &mut Vec<CommandEffect>,
) -> Vec<CommandWord> {
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
        // A longer short word is a cluster (`-it`), or a letter with its value attached
        // (`-v/a:/b`).
        let short = !text.starts_with("--") && text.len() > 2;
        let last = text.get(text.len() - 1..).unwrap_or("");
        let letter = if short { last } else { "" };
        let attached = text.starts_with("-v")
            || text.starts_with("-e")
            || text.starts_with("-p")
            || text.starts_with("-u")
            || text.starts_with("-w");
        // Four spellings of a value: `--name=V`, `--name V` or `-n V`, `-nV`, and a cluster whose
        // last letter takes the next word.
        let value = if name.len() < text.len() && text.starts_with("--") {
            word.suffix_after_char('=')
        } else if VALUES.contains(&text) {
            at += 1;
            call.words.get(at).cloned()
        } else if short && attached {
            Some(word.word_suffix_from_byte(2))
        } else if short && "vepuwhmlac".contains(letter) {
            at += 1;
            call.words.get(at).cloned()
        } else {
            None
        };
        // `-itv A:B`: the last letter of a cluster is the option that takes the value.
        let short_name = if short && !attached {
            letter
        } else {
            name.get(1..2).unwrap_or("")
        };
        match name {
            // These weaken the separation from the host. `--ipc` and `--uts` do so only with
            // `host`.
            "--privileged" | "--cap-add" | "--device" | "--security-opt" | "--pid" | "--userns"
            | "--ipc" | "--uts" | "--cgroupns" | "--volumes-from" | "--runtime" => {
                let host = value.as_ref().is_none_or(|word| {
                    name != "--ipc" && name != "--uts" || word.text.contains("host")
                });
                if host {
                    out.push(CommandEffect::Kind(NonFileEffectKind::Privilege));
                }
            }
            "--volume" => add_container_mount_effects(value.as_ref(), out),
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
                    add_container_mount_effects(
                        Some(&CommandWord::new_literal_word(format!("{source}:/x"))),
                        out,
                    );
                }
            }
            "--entrypoint" => entry = value,
            "--device-cgroup-rule" => out.push(CommandEffect::Kind(NonFileEffectKind::Privilege)),
            "--env-file" => {
                out.extend(value.map(|word| CommandEffect::File(FileAccess::ReadUnshown, word)))
            }
            "--cidfile" => {
                out.extend(value.map(|word| CommandEffect::File(FileAccess::Write, word)))
            }
            // The container comes back after a reboot.
            "--restart" if value.as_ref().is_none_or(|word| word.text != "no") => {
                out.push(CommandEffect::Kind(NonFileEffectKind::Persists));
            }
            _ if !text.starts_with("--") && short_name == "v" => {
                add_container_mount_effects(value.as_ref(), out)
            }
            _ => {}
        }
        at += 1;
    }
    let mut rest = call.words.get(at..).unwrap_or(&[]).to_vec();
    // The entry point is the program; the words behind the image are its arguments.
    if let Some(entry) = entry {
        rest.insert(rest.len().min(1), entry);
    }
    rest
}

/// Adds a folder of the host that the container can read, or write unless it is mounted `:ro`.
fn add_container_mount_effects(value: Option<&CommandWord>, out: &mut Vec<CommandEffect>) {
    let Some(value) = value else { return };
    let Some((source, _)) = value.text.split_once(':') else {
        return;
    };
    // A name without a slash is a volume, which the daemon keeps.
    if !source.contains('/') && !source.starts_with(['.', '~', '$']) {
        return;
    }
    let mut source_word = value.clone();
    source_word = source_word.word_prefix_before_byte(source.len());
    let read_only = value.text.ends_with(":ro");
    out.push(CommandEffect::File(
        if read_only {
            FileAccess::ReadBelow
        } else {
            FileAccess::WriteBelow
        },
        source_word,
    ));
}

/// Judges `run IMAGE COMMAND` and `exec CONTAINER COMMAND`.
fn container_run_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Images are built from the project or fetched; what they run by default is not read.
    out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
    let rest = parse_container_options(call, out);
    let command = rest.get(1..).unwrap_or(&[]).to_vec();
    if !command.is_empty() {
        out.push(CommandEffect::ContainerCommand(command));
    }
}

fn container_copy_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // `NAME:PATH` lies in a container; a slash before the colon makes it a path of the host.
    let inner = |word: &CommandWord| {
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
            .map(|word| CommandEffect::File(FileAccess::ReadBelow, (*word).clone())),
    );
    if !inner(target) {
        out.push(CommandEffect::File(FileAccess::Write, (*target).clone()));
        out.push(CommandEffect::PutInto(
            (*target).clone(),
            sources.iter().map(|word| (*word).clone()).collect(),
        ));
    }
}

fn kubectl_get_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let what = call.literal_operand(0).unwrap_or("");
    // Without an output format only names and ages are printed.
    if what
        .split([',', '/'])
        .any(|kind| matches!(kind, "secret" | "secrets" | "all-secrets"))
        && call.has_option(&["o", "output"])
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::ExposesSecret));
    }
}

fn vm_and_image_tool_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    match call.literal_operand(0) {
        None
        | Some(
            "version" | "list" | "ls" | "ps" | "images" | "inspect" | "status" | "info"
            | "global-status" | "manifest" | "digest" | "list-tags" | "validate" | "fmt" | "pull",
        ) => {}
        Some("up" | "start" | "stop" | "halt" | "bud" | "build" | "reload") => {
            out.push(CommandEffect::Kind(NonFileEffectKind::Opaque))
        }
        // Anything else may delete machines or images: `vagrant destroy`, `crane delete`.
        Some(_) => out.push(CommandEffect::Kind(NonFileEffectKind::DestroysData)),
    }
}

fn kubernetes_tool_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.command_name();
    if matches!(
        name,
        "kubeconform" | "kubeval" | "stern" | "kubens" | "kubectx"
    ) && call.operands.len() <= 1
    {
        return;
    }
    match (call.literal_operand(0), call.literal_operand(1)) {
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
        ) => out.push(CommandEffect::Kind(NonFileEffectKind::Opaque)),
        (Some("create"), Some("cluster")) | (Some("cluster"), Some("create")) => {
            out.push(CommandEffect::Kind(NonFileEffectKind::Opaque))
        }
        _ => out.push(CommandEffect::Kind(NonFileEffectKind::DestroysData)),
    }
}
