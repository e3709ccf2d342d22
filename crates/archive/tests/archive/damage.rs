//! Damaged files are found, whatever the damage, and never loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_archive::{ArchiveError, Damage, Finding, Manifest, PartEntry, list, verify};
use albireo_base::Value;
use albireo_env::{Env, MemoryDisk};
use albireo_testing::random_tests;
use proptest::prelude::*;

use crate::world::{DIRECTORY, World, small_shape};

/// An archive of two small files, and all that is on the disk.
fn archive() -> (World, MemoryDisk, Env, Vec<(PathBuf, Vec<u8>)>) {
    let (disk, mut world) = (MemoryDisk::default(), World::new(small_shape(), 2));
    let env = Env { disk: Arc::new(disk.clone()), ..Env::simulated(1).0 };
    for n in 0..5 {
        world.insert(n as usize % 2, &[Value::Integer(n), Value::from("text")]);
    }
    let written = world.archive(&env, None).expect("there is room");
    let mut paths = vec![Path::new(DIRECTORY).join("0000000001/manifest.json")];
    paths.extend(written.contents.manifest().files().map(|file| Path::new(DIRECTORY).join(&file.path)));
    assert_eq!(paths.len(), 3);
    let files = paths.into_iter().map(|path| (path.clone(), disk.get(path).expect("it is there"))).collect();
    (world, disk, env, files)
}

/// The damage is found and the archive is not loaded.
fn is_found(world: &World, env: &Env) -> Result<(), String> {
    let findings = verify(env, Path::new(DIRECTORY), 1);
    if findings.is_empty() {
        return Err("verify found nothing".to_owned());
    }
    assert!(findings.iter().all(|finding| !finding.error.to_string().is_empty()));
    let listing = list(env, Path::new(DIRECTORY)).expect("the directory is there");
    match listing.complete.first() {
        Some(manifest) if world.load(env, manifest).is_ok() => Err("it was loaded".to_owned()),
        _ => Ok(()),
    }
}

#[test]
fn every_bit_that_flips_in_any_file_is_found() {
    let (world, disk, env, files) = archive();
    assert!(verify(&env, Path::new(DIRECTORY), 1).is_empty());
    for (path, bytes) in &files {
        for position in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[position / 8] ^= 1 << (position % 8);
            disk.put(path, &damaged);
            is_found(&world, &env)
                .unwrap_or_else(|what| panic!("bit {position} of {}: {what}", path.display()));
        }
        disk.put(path, bytes);
    }
    assert!(verify(&env, Path::new(DIRECTORY), 1).is_empty(), "all is as it was");
}

/// An archive of a small frozen chunk, its file's path, and the file.
fn frozen_archive() -> (World, MemoryDisk, Env, Manifest, PathBuf, Vec<u8>) {
    let (disk, mut world) = (MemoryDisk::default(), World::new(small_shape(), 1));
    let env = Env { disk: Arc::new(disk.clone()), ..Env::simulated(1).0 };
    for n in 0..600 {
        world.insert(0, &[Value::Integer(n), Value::Text(format!("text {}", n % 70))]);
    }
    world.freeze(0);
    world.delete(0, 4);
    let manifest = world.archive(&env, None).expect("there is room").contents.manifest().clone();
    let path = Path::new(DIRECTORY).join(&manifest.files().next().expect("one file").path);
    let bytes = disk.get(&path).expect("it is there");
    (world, disk, env, manifest, path, bytes)
}

#[test]
fn every_byte_that_changes_in_a_frozen_chunk_is_found_in_its_part() {
    let (world, disk, env, manifest, path, bytes) = frozen_archive();
    let frozen = manifest.files().next().and_then(|file| file.frozen.as_ref()).expect("it is frozen");
    assert!(frozen.parts.len() > 4, "{frozen:?}");
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << (position % 8);
        disk.put(&path, &damaged);
        let findings = verify(&env, Path::new(DIRECTORY), 1);
        let [Finding { path: found, error: ArchiveError::Damaged { damage, .. } }] = &findings[..] else {
            panic!("byte {position}: {findings:?}")
        };
        let Damage::Part { offset, bytes, .. } = damage else { panic!("byte {position}: {damage}") };
        assert!(
            (*offset..offset + bytes).contains(&(position as u64)) && *found == path,
            "{position}: {damage}"
        );
        assert!(position % 97 > 0 || world.load(&env, &manifest).is_err(), "byte {position} was loaded");
    }
    for length in (0..bytes.len()).step_by(501) {
        disk.put(&path, &bytes[..length]);
        is_found(&world, &env).unwrap_or_else(|what| panic!("{length}: {what}"));
    }
    disk.put(&path, &bytes);
    assert_eq!(world.load(&env, &manifest).expect("all is as it was"), world.rows());
}

#[test]
fn manifest_that_contradicts_itself_of_a_frozen_chunk_is_refused() {
    let (_, disk, env, _, _, _) = frozen_archive();
    let path = Path::new(DIRECTORY).join("0000000001/manifest.json");
    let sound = disk.get(&path).expect("it is there");
    let text = std::str::from_utf8(body(&sound)).expect("JSON");
    for (from, to) in [
        ("\"format\":2", "\"format\":1"),
        ("\"slots\":16384", "\"slots\":16385"),
        ("\"slots\":16384", "\"slots\":0"),
        ("\"invalid\":[[4,4],[600,16383]]", "\"invalid\":[[4,5],[600,16383]]"),
        ("\"invalid\":[[4,4],[600,16383]]", "\"invalid\":[[4,4],[600,16384]]"),
        ("\"invalid\":[[4,4],[600,16383]]", "\"invalid\":\"AAAA\""),
        ("\"parts\":[[", "\"parts\":[[1"),
        ("\"parts\":[[", "\"parts\":[[0,0],["),
        ("\"crc32c\":", "\"crc32c\":1"),
        ("\"chunks\":1", "\"chunks\":2"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        disk.put(&path, &manifest_with(text.replacen(from, to, 1).as_bytes()));
        let refused = Manifest::read(&env, Path::new(DIRECTORY), 1).expect_err(to);
        let refused_for = |damage: &Damage| matches!(damage, Damage::Contradiction(_) | Damage::Form(_));
        let ArchiveError::Damaged { damage, .. } = refused else { panic!("{to}: {refused}") };
        assert!(refused_for(&damage), "{to}: {damage}");
    }
}

#[test]
fn every_file_that_is_cut_or_extended_or_gone_or_another_is_found() {
    let (world, disk, env, files) = archive();
    for (path, bytes) in &files {
        for length in 0..bytes.len() {
            disk.put(path, &bytes[..length]);
            is_found(&world, &env).unwrap_or_else(|what| panic!("{length} of {}: {what}", path.display()));
        }
        disk.put(path, &[bytes, &b"\n"[..]].concat());
        is_found(&world, &env).expect("it is longer");
        disk.put(path, &[bytes, &bytes[..]].concat());
        is_found(&world, &env).expect("it is there twice");
        for (other, contents) in files.iter().filter(|(other, _)| other != path) {
            disk.put(path, contents);
            is_found(&world, &env).unwrap_or_else(|what| panic!("{} is another: {what}", other.display()));
        }
        env.disk.remove_file(path).expect("it is there");
        let findings = verify(&env, Path::new(DIRECTORY), 1);
        let missing =
            |error: &ArchiveError| matches!(error, ArchiveError::Damaged { damage: Damage::Missing, .. });
        assert!(findings.len() == 1 && findings[0].path == *path && missing(&findings[0].error));
        disk.put(path, bytes);
    }
}

/// The body of a manifest, and a manifest with this body and a right checksum.
fn body(bytes: &[u8]) -> &[u8] {
    let start = br#"{"crc32c":"00000000","manifest":"#.len();
    &bytes[start..bytes.len() - 2]
}

fn manifest_with(body: &[u8]) -> Vec<u8> {
    let head = format!("{{\"crc32c\":\"{:08x}\",\"manifest\":", crc32c::crc32c(body));
    [head.as_bytes(), body, b"}\n"].concat()
}

/// What reading says of a manifest in which `from` was replaced, with a right checksum.
fn read_with(from: &str, to: &str) -> Result<Manifest, ArchiveError> {
    let (_, disk, env, files) = archive();
    let text = std::str::from_utf8(body(&files[0].1)).expect("JSON");
    assert!(text.contains(from), "{text}");
    disk.put(&files[0].0, &manifest_with(text.replacen(from, to, 1).as_bytes()));
    Manifest::read(&env, Path::new(DIRECTORY), 1)
}

#[test]
fn manifest_of_another_format_is_refused_with_the_reason() {
    let refused = read_with("\"format\":1", "\"format\":3,\"new\":[]").expect_err("it is not known");
    assert!(matches!(refused, ArchiveError::Format { found: 3, .. }));
    assert!(
        refused.to_string().contains("has format 3, and this version reads formats up to 2"),
        "{refused}"
    );
}

#[test]
fn manifest_that_contradicts_itself_is_refused() {
    for (from, to) in [
        ("\"number\":1", "\"number\":2"),
        ("0000000001/t3-p0-c0.arrow", "../../etc/passwd.arrow"),
        ("0000000001/t3-p0-c0.arrow", "/etc/passwd.arrow"),
        ("0000000001/t3-p0-c0.arrow", "0000000001/../x.arrow"),
        ("0000000001/t3-p0-c0.arrow", "0000000002/t3-p0-c0.arrow"),
        ("0000000001/t3-p0-c0.arrow", "1/t3-p0-c0.arrow"),
        ("0000000001/t3-p0-c0.arrow", "0000000001/lock"),
        ("0000000001/t3-p0-c0.arrow", "0000000001/t3-p1-c0.arrow"),
        ("\"partition\":0", "\"partition\":1"),
        ("\"rows\":3", "\"rows\":4"),
        ("\"rows\":5", "\"rows\":18446744073709551615"),
    ] {
        let refused = read_with(from, to).expect_err("it contradicts itself");
        let contradicts = matches!(refused, ArchiveError::Damaged { damage: Damage::Contradiction(_), .. });
        assert!(contradicts, "{from} {to}: {refused}");
    }
    for (from, to) in [("\"rows\":3", "\"rows\":-3"), ("\"number\":1", "\"nummer\":1"), ("[", "{")] {
        let refused = read_with(from, to).expect_err("it is none");
        assert!(matches!(refused, ArchiveError::Damaged { damage: Damage::Form(_), .. }), "{refused}");
    }
    read_with("\"format\":1", "\"format\": 1").expect("the same");
}

random_tests! {
    #![cases(400)]

    #[test]
    fn random_manifest_never_panics_and_never_loads_other_rows(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..6),
    ) {
        let (world, disk, env, files) = archive();
        let mut text = body(&files[0].1).to_vec();
        for (at, byte, kind) in changes {
            let at = at.index(text.len());
            match kind {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => drop(text.remove(at)),
            }
        }
        disk.put(&files[0].0, &manifest_with(&text));
        if let Ok(manifest) = Manifest::read(&env, Path::new(DIRECTORY), 1)
            && verify(&env, Path::new(DIRECTORY), 1).is_empty()
            && manifest.table(3).is_some()
        {
            // Who changes a checksum on purpose may say of a file that it is of another partition.
            let loaded: usize = world.load(&env, &manifest).expect("verified").iter().map(Vec::len).sum();
            prop_assert!(loaded <= 5);
        }
    }

    #[test]
    fn random_changes_of_a_frozen_chunk_with_right_checksums_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..5),
    ) {
        thread_local!(static ARCHIVE: (World, MemoryDisk, Env, Manifest, PathBuf, Vec<u8>) = frozen_archive());
        ARCHIVE.with(|(world, disk, env, manifest, path, bytes)| {
            let mut bytes = bytes.clone();
            for (at, byte, place) in changes {
                // Most of the file are codes; what describes them is before and behind.
                let length = bytes.len();
                let at = match place {
                    0 => at.index(length),
                    1 => at.index(3000),
                    2 => length - 1 - at.index(3000),
                    _ => length - 1 - at.index(200),
                };
                bytes[at] = byte;
            }
            disk.put(path, &bytes);
            let mut file = manifest.files().next().expect("one file").clone();
            file.crc32c = crc32c::crc32c(&bytes);
            file.frozen.as_mut().expect("it is frozen").parts = vec![PartEntry(file.bytes, file.crc32c)];
            world.may_load(env, &file);
        });
    }

    #[test]
    fn random_bytes_are_no_manifest(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (_, disk, env, files) = archive();
        disk.put(&files[0].0, &bytes);
        prop_assert!(Manifest::read(&env, Path::new(DIRECTORY), 1).is_err());
        let listing = list(&env, Path::new(DIRECTORY)).expect("the directory is there");
        prop_assert!(listing.complete.is_empty() && listing.unreadable.len() == 1);
    }
}
