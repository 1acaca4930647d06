//! A file system in memory, with a clock that is set and reads that can be torn.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use checkrein_verifiers::file_system::{
    FileKind, FileStamp, FileStat, OpenFileForReading, OpenFolder, ReadOnlyFileSystem, SymlinkMode,
};

/// So much of a file comes in one piece.
const PIECE: usize = 4;
/// So many links are followed, one after the other.
const MOST_LINKS: u32 = 40;

#[derive(Debug, Clone)]
pub(crate) struct MemoryFiles {
    state: Arc<Mutex<MemoryFilesState>>,
    epoch: Instant,
    /// How many threads are worth starting.
    threads: usize,
}

#[derive(Debug)]
struct MemoryFilesState {
    nodes: BTreeMap<PathBuf, MemoryNode>,
    /// Nanoseconds since 1970.
    now: i64,
    inodes: u64,
    /// Files opened so far.
    opened: u32,
    /// Between two pieces of this file, it is written anew.
    torn: Option<(PathBuf, Vec<u8>)>,
    /// Whoever opens this file next finds another in its place, which is gone again at once.
    replaced: Option<(PathBuf, Vec<u8>)>,
    /// This file cannot be read.
    broken: Option<PathBuf>,
}

#[derive(Debug, Clone)]
struct MemoryNode {
    what: MemoryNodeKind,
    executable: bool,
    inode: u64,
    changed: i64,
}

#[derive(Debug, Clone)]
enum MemoryNodeKind {
    File(Vec<u8>),
    Folder,
    Link(PathBuf),
}

impl MemoryFiles {
    /// One that holds an empty folder.
    pub(crate) fn new(root: &Path) -> Self {
        let files = Self {
            state: Arc::new(Mutex::new(MemoryFilesState {
                nodes: BTreeMap::new(),
                now: 1_000_000_000_000_000_000,
                inodes: 0,
                opened: 0,
                torn: None,
                replaced: None,
                broken: None,
            })),
            epoch: Instant::now(),
            threads: 1,
        };
        let mut folders: Vec<&Path> = root.ancestors().collect();
        folders.reverse();
        for folder in folders {
            files.state().put(folder, MemoryNodeKind::Folder);
        }
        files
    }

    /// The same files, asked by several threads.
    pub(crate) fn with_threads(&self, threads: usize) -> Self {
        Self {
            threads,
            ..self.clone()
        }
    }

    fn state(&self) -> MutexGuard<'_, MemoryFilesState> {
        self.state.lock().unwrap()
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.state().now += i64::try_from(time.as_nanos()).unwrap();
    }

    pub(crate) fn opened(&self) -> u32 {
        self.state().opened
    }

    /// Writes a file, and the folders above it. Whether that can be done.
    pub(crate) fn write(&self, path: &Path, content: &[u8]) -> bool {
        self.state().write(path, content)
    }

    pub(crate) fn make_folder(&self, path: &Path) -> bool {
        let mut state = self.state();
        if state.kind(path).is_some() || !state.make_folders_above(path) {
            return false;
        }
        state.put(path, MemoryNodeKind::Folder);
        true
    }

    pub(crate) fn make_link(&self, path: &Path, target: &Path) -> bool {
        let mut state = self.state();
        if state.kind(path).is_some() || !state.make_folders_above(path) {
            return false;
        }
        state.put(path, MemoryNodeKind::Link(target.to_owned()));
        true
    }

    pub(crate) fn set_executable(&self, path: &Path, executable: bool) -> bool {
        let mut state = self.state();
        if state.kind(path) != Some(FileKind::File) {
            return false;
        }
        let now = state.now;
        let node = state.nodes.get_mut(path).unwrap();
        (node.executable, node.changed) = (executable, now);
        true
    }

    /// Removes what stands there, with all that is in it.
    pub(crate) fn remove(&self, path: &Path) -> Option<FileKind> {
        let mut state = self.state();
        let kind = state.kind(path)?;
        state.nodes.retain(|other, _| !other.starts_with(path));
        Some(kind)
    }

    /// Has a file written anew while it is read the next time.
    pub(crate) fn tear(&self, path: &Path, content: &[u8]) {
        self.state().torn = Some((path.to_owned(), content.to_owned()));
    }

    /// Has another file stand in the place of one while it is opened the next time.
    pub(crate) fn replace_briefly(&self, path: &Path, content: &[u8]) {
        self.state().replaced = Some((path.to_owned(), content.to_owned()));
    }

    /// Has the reading of a file fail, or work again.
    pub(crate) fn break_file(&self, path: Option<&Path>) {
        self.state().broken = path.map(Path::to_owned);
    }
}

impl MemoryFilesState {
    /// What stands at a path that leads through no link.
    fn kind(&self, path: &Path) -> Option<FileKind> {
        self.nodes.get(path).map(MemoryNode::kind)
    }

    fn new_node(&mut self, what: MemoryNodeKind) -> MemoryNode {
        self.inodes += 1;
        MemoryNode {
            what,
            executable: false,
            inode: self.inodes,
            changed: self.now,
        }
    }

    fn put(&mut self, path: &Path, what: MemoryNodeKind) {
        let node = self.new_node(what);
        self.nodes.insert(path.to_owned(), node);
    }

    fn make_folders_above(&mut self, path: &Path) -> bool {
        let Some(above) = path.parent() else {
            return true;
        };
        match self.kind(above) {
            Some(kind) => kind == FileKind::Folder,
            None if self.make_folders_above(above) => {
                self.put(above, MemoryNodeKind::Folder);
                true
            }
            None => false,
        }
    }

    fn write(&mut self, path: &Path, content: &[u8]) -> bool {
        match self.kind(path) {
            None if self.make_folders_above(path) => {
                self.put(path, MemoryNodeKind::File(content.to_owned()))
            }
            Some(FileKind::File) => {
                let now = self.now;
                let node = self.nodes.get_mut(path).unwrap();
                (node.what, node.changed) = (MemoryNodeKind::File(content.to_owned()), now);
            }
            _ => return false,
        }
        true
    }

    /// Where a path leads to.
    fn resolve(&self, path: &Path, links: SymlinkMode) -> io::Result<PathBuf> {
        let mut rest: Vec<PathBuf> = Vec::new();
        let push = |rest: &mut Vec<PathBuf>, path: &Path| {
            let parts = path.components().rev();
            rest.extend(parts.map(|part| PathBuf::from(part.as_os_str())));
        };
        push(&mut rest, path);
        let (mut at, mut followed) = (PathBuf::new(), 0);
        while let Some(part) = rest.pop() {
            match part.components().next() {
                Some(Component::ParentDir) => {
                    at.pop();
                    continue;
                }
                Some(Component::CurDir) => continue,
                _ => {}
            }
            if self.kind(&at).is_some_and(|kind| kind != FileKind::Folder) {
                return Err(ErrorKind::NotADirectory.into());
            }
            let next = at.join(&part);
            let node = self
                .nodes
                .get(&next)
                .ok_or_else(|| io::Error::from(ErrorKind::NotFound))?;
            match &node.what {
                MemoryNodeKind::Link(target)
                    if !rest.is_empty() || links == SymlinkMode::Follow =>
                {
                    followed += 1;
                    if followed > MOST_LINKS {
                        return Err(rustix::io::Errno::LOOP.into());
                    }
                    push(&mut rest, target);
                }
                _ => at = next,
            }
        }
        Ok(at)
    }

    fn stat(&self, path: &Path, links: SymlinkMode) -> io::Result<FileStat> {
        Ok(self.nodes[&self.resolve(path, links)?].stat())
    }
}

impl MemoryNode {
    fn kind(&self) -> FileKind {
        match self.what {
            MemoryNodeKind::File(_) => FileKind::File,
            MemoryNodeKind::Folder => FileKind::Folder,
            MemoryNodeKind::Link(_) => FileKind::Link,
        }
    }

    fn stat(&self) -> FileStat {
        let size = match &self.what {
            MemoryNodeKind::File(content) => content.len(),
            MemoryNodeKind::Folder | MemoryNodeKind::Link(_) => 0,
        };
        FileStat {
            kind: self.kind(),
            stamp: FileStamp {
                size: size as u64,
                modified_ns: self.changed,
                changed_ns: self.changed,
                device: 1,
                inode: self.inode,
                mode: if self.executable { 0o755 } else { 0o644 },
            },
        }
    }
}

impl ReadOnlyFileSystem for MemoryFiles {
    fn clock_now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.state().now.try_into().unwrap())
    }

    fn monotonic_now(&self) -> Instant {
        self.epoch + Duration::from_nanos(self.state().now.try_into().unwrap())
    }

    fn sleep(&self, time: Duration) {
        self.pass(time);
    }

    fn worthwhile_thread_count(&self) -> usize {
        self.threads
    }

    fn open_folder_for_listing(&self, folder: &Path) -> io::Result<Box<dyn OpenFolder>> {
        let state = self.state();
        let path = state.resolve(folder, SymlinkMode::Follow)?;
        if state.kind(&path) != Some(FileKind::Folder) {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(Box::new(MemoryFolder {
            files: self.clone(),
            path,
        }))
    }

    fn stat_file(&self, path: &Path, links: SymlinkMode) -> io::Result<FileStat> {
        self.state().stat(path, links)
    }

    fn open_file_for_reading(
        &self,
        path: &Path,
        links: SymlinkMode,
    ) -> io::Result<Box<dyn OpenFileForReading>> {
        let mut state = self.state();
        let path = state.resolve(path, links)?;
        if state.kind(&path) != Some(FileKind::File) {
            return Err(ErrorKind::InvalidInput.into());
        }
        state.opened += 1;
        let replaced = state.replaced.take_if(|(other, _)| *other == path);
        let instead = replaced.map(|(_, content)| state.new_node(MemoryNodeKind::File(content)));
        Ok(Box::new(MemoryFile {
            files: self.clone(),
            path,
            instead,
            at: 0,
        }))
    }

    fn read_link(&self, link: &Path) -> io::Result<PathBuf> {
        let state = self.state();
        match &state.nodes[&state.resolve(link, SymlinkMode::NoFollow)?].what {
            MemoryNodeKind::Link(target) => Ok(target.clone()),
            MemoryNodeKind::File(_) | MemoryNodeKind::Folder => Err(ErrorKind::InvalidInput.into()),
        }
    }
}

struct MemoryFolder {
    files: MemoryFiles,
    path: PathBuf,
}

impl OpenFolder for MemoryFolder {
    fn for_each_folder_entry(
        &mut self,
        each: &mut dyn FnMut(&OsStr, io::Result<FileKind>),
    ) -> io::Result<()> {
        let state = self.files.state();
        // In an order that nobody should rely on.
        for (path, node) in state.nodes.iter().rev() {
            if path.parent() == Some(&self.path) {
                each(path.file_name().unwrap(), Ok(node.kind()));
            }
        }
        Ok(())
    }

    fn stat_folder_entry(&self, name: &OsStr) -> io::Result<FileStat> {
        self.files
            .state()
            .stat(&self.path.join(name), SymlinkMode::NoFollow)
    }
}

struct MemoryFile {
    files: MemoryFiles,
    path: PathBuf,
    /// Not the file at the path.
    instead: Option<MemoryNode>,
    at: usize,
}

impl Read for MemoryFile {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        let mut state = self.files.state();
        if state.broken.as_ref() == Some(&self.path) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let node = self.instead.as_ref();
        let MemoryNodeKind::File(content) = &node.unwrap_or(&state.nodes[&self.path]).what else {
            return Err(ErrorKind::InvalidInput.into());
        };
        let rest = content.get(self.at..).unwrap_or_default();
        let length = rest.len().min(PIECE).min(block.len());
        block[..length].copy_from_slice(&rest[..length]);
        self.at += length;
        if let Some((path, content)) = state.torn.take_if(|(path, _)| *path == self.path) {
            state.write(&path, &content);
        }
        Ok(length)
    }
}

impl OpenFileForReading for MemoryFile {
    fn stat_open_file(&self) -> io::Result<FileStat> {
        match &self.instead {
            Some(node) => Ok(node.stat()),
            None => self.files.state().stat(&self.path, SymlinkMode::NoFollow),
        }
    }
}
