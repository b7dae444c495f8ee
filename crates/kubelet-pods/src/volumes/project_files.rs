//! `/etc/projects` and `/etc/projid`: which project a directory belongs to, and what projects are called. Whoever gives out
//! numbers of projects on a machine looks there first, and locks both files while they change (projects(5), projid(5)).
//!
//! Lines of others are left as they are. Not here: what is a project's by the file system's word.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use sys::project_quota::ProjectId;

use super::file_error::FileError;

/// The first number that is given out; smaller ones are left to people. Upstream's.
pub(super) const FIRST: ProjectId = 1_048_577;
/// How many numbers that are in neither file are tried, should the file system have something of theirs. Upstream's.
const MAX_TRIED: usize = 128;
/// A file of that length is not one of lines that people wrote.
const MAX_BYTES: u64 = 16 << 20;
/// How long somebody else's lock is waited for: as many times as this.
const LOCK_TRIES: usize = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Why a directory gets no project.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProjectError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("project quotas: {0}")]
    Quota(#[from] io::Error),
    #[error("cannot find available quota ID")]
    NoneFree,
    #[error("{} is noted to be of project {project}", path.display())]
    Foreign { path: PathBuf, project: ProjectId },
    #[error("{path:?} cannot be noted in a line")]
    Path { path: PathBuf },
}

/// The two files.
pub(super) struct ProjectFiles {
    projects: PathBuf,
    names: PathBuf,
    /// Threads of this process wait here, and not for the files' locks.
    turn: Mutex<()>,
}

impl ProjectFiles {
    /// Those in a directory, which is `/etc`.
    pub(super) fn in_directory(directory: &Path) -> Self {
        Self { projects: directory.join("projects"), names: directory.join("projid"), turn: Mutex::default() }
    }

    /// The project that is noted for a directory.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub(super) fn noted(&self, directory: &Path) -> Result<Option<ProjectId>, ProjectError> {
        let directory = line_of(directory)?;
        match File::open(&self.projects) {
            Ok(file) => Ok(project_of(&read(file, &self.projects)?, directory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError::of("open", &self.projects)(error).into()),
        }
    }

    /// Notes a free number for a directory, or finds the one that was noted by a process that got no further.
    ///
    /// # Errors
    /// There is none, or `is_free` fails, or the files cannot be changed.
    pub(super) fn take(
        &self,
        directory: &Path,
        is_free: &dyn Fn(ProjectId) -> io::Result<bool>,
    ) -> Result<ProjectId, ProjectError> {
        let line = line_of(directory)?;
        self.change(|texts| match project_of(&texts.projects, line) {
            Some(project) if project >= FIRST => Ok(project),
            Some(project) => Err(ProjectError::Foreign { path: directory.to_owned(), project }),
            None => {
                let project = texts.free(is_free)?;
                texts.add(line, project);
                Ok(project)
            }
        })
    }

    /// Notes a directory's project, if nothing is noted.
    ///
    /// # Errors
    /// The files cannot be changed.
    pub(super) fn note(&self, directory: &Path, project: ProjectId) -> Result<(), ProjectError> {
        let line = line_of(directory)?;
        self.change(|texts| {
            if project_of(&texts.projects, line).is_none() {
                texts.add(line, project);
            }
            Ok(())
        })
    }

    /// A directory belongs to no project any more.
    ///
    /// # Errors
    /// The files cannot be changed.
    pub(super) fn remove(&self, directory: &Path) -> Result<(), ProjectError> {
        let line = line_of(directory)?;
        self.change(|texts| {
            texts.remove(line);
            Ok(())
        })
    }

    /// Changes both files at once for everybody who locks them, too.
    fn change<T>(&self, call: impl FnOnce(&mut Texts) -> Result<T, ProjectError>) -> Result<T, ProjectError> {
        let _turn = self.turn.lock();
        // Held until both are written.
        let (projects, names) = (lock(&self.projects)?, lock(&self.names)?);
        let modes = (mode(&projects, &self.projects)?, mode(&names, &self.names)?);
        let before = Texts { projects: read(&projects, &self.projects)?, names: read(&names, &self.names)? };
        let mut after = before.clone();
        let done = call(&mut after)?;
        // Names first, as upstream: a number that is named is given to nobody.
        let of_names = (&self.names, &before.names, &after.names, modes.1);
        let of_projects = (&self.projects, &before.projects, &after.projects, modes.0);
        for (path, before, after, mode) in [of_names, of_projects] {
            if before != after {
                sys::fs::write_atomic(path, after.as_bytes(), mode).map_err(FileError::of("write", path))?;
            }
        }
        Ok(done)
    }
}

/// What the files say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Texts {
    projects: String,
    names: String,
}

impl Texts {
    /// The first number that is in neither file and free otherwise.
    fn free(&self, is_free: &dyn Fn(ProjectId) -> io::Result<bool>) -> Result<ProjectId, ProjectError> {
        let noted = self.projects.lines().filter_map(project).map(|(project, _)| project);
        let taken: std::collections::HashSet<ProjectId> = noted.chain(self.names.lines().filter_map(named)).collect();
        let untaken = (FIRST..ProjectId::MAX).filter(|project| !taken.contains(project));
        for project in untaken.take(MAX_TRIED) {
            if is_free(project)? {
                return Ok(project);
            }
        }
        Err(ProjectError::NoneFree)
    }

    fn add(&mut self, directory: &str, project: ProjectId) {
        append(&mut self.projects, &format!("{project}:{directory}"));
        if !self.names.lines().filter_map(named).any(|named| named == project) {
            append(&mut self.names, &name_line(project));
        }
    }

    fn remove(&mut self, directory: &str) {
        let Some(own) = project_of(&self.projects, directory) else { return };
        retain(&mut self.projects, |line| project(line).is_none_or(|(_, of)| of != directory));
        if !self.projects.lines().filter_map(project).any(|(project, _)| project == own) {
            retain(&mut self.names, |line| line != name_line(own));
        }
    }
}

/// As upstream calls the project of a volume.
fn name_line(project: ProjectId) -> String {
    format!("volume{project}:{project}")
}

fn append(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
}

fn retain(text: &mut String, stays: impl Fn(&str) -> bool) {
    let kept = text.split_inclusive('\n').filter(|line| stays(line.trim_end_matches('\n')));
    *text = kept.collect();
}

/// A line of `/etc/projects`.
fn project(line: &str) -> Option<(ProjectId, &str)> {
    let (project, directory) = line.split_once(':')?;
    Some((project.parse().ok()?, directory))
}

/// The number in a line of `/etc/projid`.
fn named(line: &str) -> Option<ProjectId> {
    let (name, project) = line.split_once(':')?;
    if name.is_empty() || name.starts_with('#') { None } else { project.parse().ok() }
}

fn project_of(projects: &str, directory: &str) -> Option<ProjectId> {
    projects.lines().filter_map(project).find(|(_, of)| *of == directory).map(|(project, _)| project)
}

/// A directory as lines have it.
fn line_of(directory: &Path) -> Result<&str, ProjectError> {
    let text = directory.to_str().filter(|text| !text.contains('\n'));
    text.ok_or_else(|| ProjectError::Path { path: directory.to_owned() })
}

/// Opens a file and locks it, made if it is not there. It is held until it is closed.
fn lock(path: &Path) -> Result<File, FileError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    for _ in 0..LOCK_TRIES {
        let opened = OpenOptions::new().read(true).append(true).create(true).mode(0o644).custom_flags(flags).open(path);
        let file = opened.map_err(FileError::of("open", path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Whoever held it has put another file in its place.
            Ok(()) if !is_at(&file, path) => {}
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            Err(error) => return Err(FileError::of("lock", path)(error.into())),
        }
    }
    Err(FileError::of("lock", path)(io::ErrorKind::ResourceBusy.into()))
}

fn is_at(file: &File, path: &Path) -> bool {
    let found = std::fs::symlink_metadata(path).and_then(|found| Ok((found, file.metadata()?)));
    found.is_ok_and(|(found, own)| (found.dev(), found.ino()) == (own.dev(), own.ino()))
}

fn mode(file: &File, path: &Path) -> Result<u32, FileError> {
    let meta = file.metadata().map_err(FileError::of("stat", path))?;
    if !meta.is_file() {
        return Err(FileError::of("use", path)(io::ErrorKind::InvalidInput.into()));
    }
    Ok(meta.mode() & 0o777)
}

fn read(file: impl io::Read, path: &Path) -> Result<String, FileError> {
    let mut text = String::new();
    let length = file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(FileError::of("read", path))?;
    if u64::try_from(length).is_ok_and(|length| length > MAX_BYTES) {
        return Err(FileError::of("read", path)(io::ErrorKind::FileTooLarge.into()));
    }
    Ok(text)
}

#[cfg(test)]
#[path = "project_files_tests.rs"]
mod tests;
