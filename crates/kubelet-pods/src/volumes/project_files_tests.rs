//! Who gets which number, and what becomes of the lines of others.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn all_free(_: ProjectId) -> io::Result<bool> {
    Ok(true)
}

fn texts(dir: &Path) -> [String; 2] {
    ["projects", "projid"].map(|name| std::fs::read_to_string(dir.join(name)).unwrap_or_default())
}

#[test]
fn numbers_are_noted_and_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let files = ProjectFiles::in_directory(dir.path());
    let (one, two) = (Path::new("/pods/1:a"), Path::new("/pods/2"));
    assert_eq!(files.noted(one).unwrap(), None);
    assert_eq!(texts(dir.path()), ["", ""], "nothing is made by asking");
    assert_eq!(files.take(one, &all_free).unwrap(), FIRST);
    assert_eq!(files.take(two, &all_free).unwrap(), FIRST + 1);
    assert_eq!(files.take(one, &all_free).unwrap(), FIRST, "noted already");
    let expected = ["1048577:/pods/1:a\n1048578:/pods/2\n", "volume1048577:1048577\nvolume1048578:1048578\n"];
    assert_eq!(texts(dir.path()), expected);
    assert_eq!((files.noted(one).unwrap(), files.noted(two).unwrap()), (Some(FIRST), Some(FIRST + 1)));
    files.remove(one).unwrap();
    files.remove(one).unwrap();
    assert_eq!(texts(dir.path()), ["1048578:/pods/2\n", "volume1048578:1048578\n"]);
    files.note(one, FIRST + 7).unwrap();
    files.note(two, FIRST + 7).unwrap();
    assert_eq!((files.noted(one).unwrap(), files.noted(two).unwrap()), (Some(FIRST + 7), Some(FIRST + 1)));
}

#[test]
fn lines_of_others_stay_and_their_numbers_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let projects = "# people's\n11:/srv\n1048577:/srv/big\nnot a line";
    std::fs::write(dir.path().join("projects"), projects).unwrap();
    let names = "srv:11\n#volume1048579:1048579\nlogs:1048578\nx:99999999999\n";
    std::fs::write(dir.path().join("projid"), names).unwrap();
    std::fs::set_permissions(dir.path().join("projid"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let (files, own) = (ProjectFiles::in_directory(dir.path()), Path::new("/pods/1"));
    assert_eq!(files.take(own, &all_free).unwrap(), FIRST + 2, "a name in a comment is none");
    let expected = [format!("{projects}\n1048579:/pods/1\n"), format!("{names}volume1048579:1048579\n")];
    assert_eq!(texts(dir.path()), expected);
    let mode = std::fs::metadata(dir.path().join("projid")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    files.remove(own).unwrap();
    assert_eq!(texts(dir.path()), [format!("{projects}\n"), names.to_owned()]);
    assert!(matches!(files.take(Path::new("/srv"), &all_free), Err(ProjectError::Foreign { project: 11, .. })));
    // The same project for two directories: its name goes with the last, and only the name that it has here.
    files.note(Path::new("/a"), FIRST).unwrap();
    files.remove(Path::new("/a")).unwrap();
    assert_eq!(texts(dir.path())[1], format!("{names}volume1048577:1048577\n"));
}

#[test]
fn numbers_that_are_in_use_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let files = ProjectFiles::in_directory(dir.path());
    assert_eq!(files.take(Path::new("/a"), &|project| Ok(project > FIRST + 1)).unwrap(), FIRST + 2);
    let before = texts(dir.path());
    assert!(matches!(files.take(Path::new("/b"), &|_| Ok(false)), Err(ProjectError::NoneFree)));
    assert!(matches!(files.take(Path::new("/b"), &|_| Err(Errno::IO.into())), Err(ProjectError::Quota(_))));
    assert!(matches!(files.take(Path::new("/b\n1:/c"), &all_free), Err(ProjectError::Path { .. })));
    assert_eq!(texts(dir.path()), before);
}

#[test]
fn files_that_are_none_or_locked_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let files = ProjectFiles::in_directory(dir.path());
    symlink("/dev/null", dir.path().join("projid")).unwrap();
    assert!(files.take(Path::new("/a"), &all_free).is_err(), "a link");
    std::fs::remove_file(dir.path().join("projid")).unwrap();
    let held = lock(&dir.path().join("projects")).unwrap();
    assert!(files.take(Path::new("/a"), &all_free).is_err(), "somebody else's turn");
    drop(held);
    assert!(files.take(Path::new("/a"), &all_free).is_ok());
    std::fs::File::create(dir.path().join("projects")).unwrap().set_len(MAX_BYTES + 1).unwrap();
    assert!(files.noted(Path::new("/a")).is_err(), "without end");
}
