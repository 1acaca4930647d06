//! A disk for SQLite that remembers, per folder, what was synced, and can be full. It is
//! SQLite's own with four functions put before it, so locks and shared memory are real.

#![expect(unsafe_code, reason = "SQLite's file system is a table of C functions")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

/// What would be found after a power cut: file names and contents.
#[derive(Default)]
struct SimulatedDisk {
    synced: BTreeMap<PathBuf, Vec<u8>>,
    /// Removed, but their folder was not synced since.
    removed: Vec<PathBuf>,
    full: bool,
}

struct DiskFile {
    path: PathBuf,
    /// The functions of SQLite's own disk; addresses, because pointers are not `Send`.
    real: usize,
    ours: usize,
    /// SQLite syncs the folder with the first sync of a log that it may have made.
    syncs_folder: bool,
}

#[derive(Default)]
struct VfsState {
    disks: BTreeMap<PathBuf, SimulatedDisk>,
    files: BTreeMap<usize, DiskFile>,
    real: usize,
}

static WORLD: Mutex<Option<VfsState>> = Mutex::new(None);

impl SimulatedDisk {
    fn sync_folder(&mut self) {
        for path in self.removed.drain(..) {
            self.synced.remove(&path);
        }
    }
}

fn with<T>(look: impl FnOnce(&mut VfsState) -> T) -> T {
    let mut world: MutexGuard<'_, _> = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    look(world.get_or_insert_default())
}

fn disk<T>(folder: &Path, look: impl FnOnce(&mut SimulatedDisk) -> T) -> T {
    with(|world| look(world.disks.entry(folder.to_owned()).or_default()))
}

/// Puts into `to` what a power cut now would leave of the files in `folder`.
pub(crate) fn power_cut(folder: &Path, to: &Path) {
    let synced = disk(folder, |disk| disk.synced.clone());
    for (path, content) in synced {
        fs::write(to.join(path.file_name().unwrap()), content).unwrap();
    }
}

/// From now on, nothing can be written to the files in `folder`, or again it can.
pub(crate) fn set_full(folder: &Path, full: bool) {
    disk(folder, |disk| disk.full = full);
}

/// Makes this the disk of every connection that is opened in this process from now on.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the default VFS is static. Ours is a copy of it, never freed, that says
        // it is another one; the functions below pass the real one on.
        unsafe {
            let real = ffi::sqlite3_vfs_find(std::ptr::null());
            let mut ours = *real;
            ours.pNext = std::ptr::null_mut();
            ours.zName = c"forgetful".as_ptr();
            ours.xOpen = Some(open);
            ours.xDelete = Some(delete);
            with(|world| world.real = real as usize);
            let ours = Box::leak(Box::new(ours));
            assert_eq!(ffi::sqlite3_vfs_register(ours, 1), ffi::SQLITE_OK);
        }
    });
}

fn real_vfs() -> *mut sqlite3_vfs {
    with(|world| world.real) as *mut sqlite3_vfs
}

/// # Safety
/// As `sqlite3_vfs.xOpen`.
unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let real = real_vfs();
    // SAFETY: the arguments are SQLite's, for the VFS that ours is a copy of. After a
    // success `pMethods` points to static functions; a copy with three replaced lives
    // until `close`.
    unsafe {
        let code = (*real).xOpen.unwrap()(real, name, file, flags, out);
        if code == ffi::SQLITE_OK && !name.is_null() {
            let path = PathBuf::from(CStr::from_ptr(name).to_str().unwrap());
            let methods = (*file).pMethods;
            let mut ours = *methods;
            ours.xWrite = Some(write);
            ours.xSync = Some(sync);
            ours.xClose = Some(close);
            let ours: *mut sqlite3_io_methods = Box::into_raw(Box::new(ours));
            (*file).pMethods = ours;
            let logs = ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL;
            let syncs_folder = flags & ffi::SQLITE_OPEN_CREATE != 0 && flags & logs != 0;
            let (real, ours) = (methods as usize, ours as usize);
            let entry = DiskFile {
                path,
                real,
                ours,
                syncs_folder,
            };
            with(|world| world.files.insert(file as usize, entry));
        }
        code
    }
}

/// # Safety
/// As `sqlite3_vfs.xDelete`.
unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    let real = real_vfs();
    // SAFETY: as in `open`.
    let (code, path) = unsafe {
        let path = PathBuf::from(CStr::from_ptr(name).to_str().unwrap());
        ((*real).xDelete.unwrap()(real, name, sync), path)
    };
    if code == ffi::SQLITE_OK {
        disk(path.parent().unwrap(), |disk| {
            disk.removed.push(path.clone());
            if sync != 0 {
                disk.sync_folder();
            }
        });
    }
    code
}

fn entry(file: *mut sqlite3_file) -> (PathBuf, *const sqlite3_io_methods) {
    with(|world| {
        let file = &world.files[&(file as usize)];
        (file.path.clone(), file.real as *const sqlite3_io_methods)
    })
}

/// # Safety
/// As `sqlite3_io_methods.xWrite`.
unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    len: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    let (path, real) = entry(file);
    if disk(path.parent().unwrap(), |disk| disk.full) {
        return ffi::SQLITE_FULL;
    }
    // SAFETY: `file` was opened by the real VFS, whose function this is.
    unsafe { (*real).xWrite.unwrap()(file, bytes, len, at) }
}

/// # Safety
/// As `sqlite3_io_methods.xSync`.
unsafe extern "C" fn sync(file: *mut sqlite3_file, _: c_int) -> c_int {
    let (path, _) = entry(file);
    // The real sync is left out: no real power is cut. The file is read by SQLite's own
    // function, because opening and closing it by its name would drop SQLite's locks.
    // SAFETY: as in `write`.
    match unsafe { content(file) } {
        Ok(content) => {
            let syncs_folder = with(|world| {
                let file = world.files.get_mut(&(file as usize)).unwrap();
                std::mem::take(&mut file.syncs_folder)
            });
            disk(path.parent().unwrap(), |disk| {
                if syncs_folder {
                    disk.sync_folder();
                }
                disk.synced.insert(path.clone(), content);
            });
            ffi::SQLITE_OK
        }
        Err(code) => code,
    }
}

/// # Safety
/// `file` must be an open file of ours.
unsafe fn content(file: *mut sqlite3_file) -> Result<Vec<u8>, c_int> {
    let (_, real) = entry(file);
    let mut size = 0;
    // SAFETY: as in `write`; the buffer is as long as is said.
    unsafe {
        match (*real).xFileSize.unwrap()(file, &raw mut size) {
            ffi::SQLITE_OK => {}
            code => return Err(code),
        }
        let mut content = vec![0; usize::try_from(size).unwrap()];
        let len = c_int::try_from(content.len()).unwrap();
        match (*real).xRead.unwrap()(file, content.as_mut_ptr().cast(), len, 0) {
            ffi::SQLITE_OK => Ok(content),
            code => Err(code),
        }
    }
}

/// # Safety
/// As `sqlite3_io_methods.xClose`.
unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let entry = with(|world| world.files.remove(&(file as usize))).unwrap();
    let real = entry.real as *const sqlite3_io_methods;
    // SAFETY: as in `write`; `ours` is the box made in `open`, and nobody uses it any more
    // once the real functions are back in place.
    unsafe {
        (*file).pMethods = real;
        drop(Box::from_raw(entry.ours as *mut sqlite3_io_methods));
        (*real).xClose.unwrap()(file)
    }
}
