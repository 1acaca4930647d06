//! A real terminal (a pty) for commands that ask for a person. What is typed into it runs
//! detached from the test: whoever runs the tests may be an agent.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::world::{Said, World, text};

/// What happens once this is on the screen.
type Meanwhile<'w> = (&'static str, Box<dyn FnOnce() + 'w>);

pub(crate) struct Terminal<'w> {
    world: &'w World,
    typed: String,
    /// Before the person types.
    meanwhile: Option<Meanwhile<'w>>,
    env: Vec<(&'static str, String)>,
    /// Ctrl-C, once this is on the screen.
    leaving_at: Option<&'static str>,
    /// A program between the terminal's shell and the command.
    under: Option<PathBuf>,
    /// A folder of the repo.
    folder: &'static str,
    /// How wide it is, if it says so.
    columns: Option<u16>,
}

impl<'w> Terminal<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        Self {
            world,
            typed: String::new(),
            meanwhile: None,
            env: Vec::new(),
            leaving_at: None,
            under: None,
            folder: "",
            columns: None,
        }
    }

    /// What the person types once the command runs.
    pub(crate) fn typing(mut self, text: &str) -> Self {
        self.typed.push_str(text);
        self
    }

    /// The person presses Ctrl-C once this is on the screen.
    pub(crate) fn leaving_at(mut self, text: &'static str) -> Self {
        self.leaving_at = Some(text);
        self
    }

    /// Something happens while this is on the screen; only then does the person type.
    pub(crate) fn meanwhile(mut self, seen: &'static str, act: impl FnOnce() + 'w) -> Self {
        self.meanwhile = Some((seen, Box::new(act)));
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    /// So many columns, and colours.
    pub(crate) fn columns(mut self, columns: u16) -> Self {
        self.columns = Some(columns);
        self.with("TERM", "xterm-256color")
    }

    /// In this folder of the repo.
    pub(crate) fn at(mut self, folder: &'static str) -> Self {
        self.folder = folder;
        self
    }

    /// The command is started by a program of this name.
    pub(crate) fn under(mut self, name: &str) -> Self {
        let program = self.world.outside(name);
        // Not replaced by what it starts, which would take it out of the ancestors.
        std::fs::write(&program, "#!/bin/sh\n\"$@\"\nexit $?\n").unwrap();
        executable(&program);
        self.under = Some(program);
        self
    }

    /// Runs `checkrein` with these arguments; all it says comes as stdout.
    pub(crate) fn says(mut self, args: &[&str]) -> Said {
        let (master, slave) = pty();
        if let Some(columns) = self.columns {
            let mut size = rustix::termios::tcgetwinsize(&slave).unwrap();
            (size.ws_row, size.ws_col) = (50, columns);
            rustix::termios::tcsetwinsize(&slave, size).unwrap();
        }
        let status = self.world.outside(&format!(
            "terminal-status-{:?}",
            std::thread::current().id()
        ));
        let _ = std::fs::remove_file(&status);
        let pid = status.with_extension("pid");
        let mut words: Vec<OsString> = Vec::new();
        words.extend(self.under.map(PathBuf::into_os_string));
        words.push(env!("CARGO_BIN_EXE_checkrein").into());
        words.extend(args.iter().map(OsString::from));
        // The outer shell goes at once, so that what it leaves has no ancestor of ours.
        let line = "exec 3<&0; { sh -c 'echo $$ > \"$PID\"; exec \"$@\"' sh \"$@\"; echo $? > \"$STATUS\"; } <&3 3<&- &";
        let on = |slave: &OwnedFd| Stdio::from(slave.try_clone().unwrap());
        let mut shell = self.world.hermetic("sh");
        shell
            .current_dir(self.world.root().join(self.folder))
            .args(["-c", line, "sh"])
            .args(words)
            .env("STATUS", &status)
            .env("PID", &pid)
            .env("TERM", "dumb")
            .envs(self.env)
            .stdin(on(&slave))
            .stdout(on(&slave))
            .stderr(on(&slave));
        let mut started = shell.spawn().unwrap();
        // Only what runs in the terminal holds it open now.
        drop((shell, slave));
        started.wait().unwrap();
        let mut master = File::from(master);
        if self.meanwhile.is_none() {
            master.write_all(self.typed.as_bytes()).unwrap();
        }
        let mut said = Vec::new();
        let mut bytes = [0; 4096];
        // The last one to leave a terminal makes reading it an error.
        while let Ok(read @ 1..) = master.read(&mut bytes) {
            said.extend_from_slice(&bytes[..read]);
            let ready = self
                .meanwhile
                .take_if(|(seen, _)| text(&said).contains(*seen));
            if let Some((_, act)) = ready {
                act();
                master.write_all(self.typed.as_bytes()).unwrap();
            }
            if self
                .leaving_at
                .take_if(|seen| text(&said).contains(*seen))
                .is_some()
            {
                let pid = std::fs::read_to_string(&pid).unwrap();
                let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
                // This terminal is nobody's own, so no key of it is a signal.
                rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
            }
        }
        let code = std::fs::read_to_string(&status).unwrap();
        Said {
            code: Some(code.trim().parse().unwrap()),
            stdout: text(&said).replace("\r\n", "\n"),
            stderr: String::new(),
        }
    }
}

pub(crate) fn pty() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let mut options = File::options();
    options.read(true).write(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap());
    }
    let slave = options.open(Path::new(name.to_str().unwrap())).unwrap();
    (master, slave.into())
}

pub(crate) fn executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}
