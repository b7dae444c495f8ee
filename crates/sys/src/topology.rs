//! How the machine is put together: processors in cores, cores in sockets, caches and nodes of memory, and what memory
//! each node has.
//!
//! Read from `/sys`; see <https://docs.kernel.org/admin-guide/cputopology.html> and the ABI of `/sys/devices/system/node`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::cpu_set::CpuSet;
use crate::proc::Proc;

/// A cache of this level or above is shared by several cores.
const SHARED_CACHE_LEVEL: u32 = 3;

/// Where a processor is. A core and a cache have the number of their first processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    pub core: u32,
    pub socket: u32,
    pub node: u32,
    /// The last cache that it shares with other cores; its node where there is none.
    pub cache: u32,
}

/// A node of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryNode {
    pub memory_bytes: u64,
    /// Sizes of huge pages in bytes, and how many there are of each.
    pub huge_pages: BTreeMap<u64, u64>,
    /// How far it is to each node, itself included, in the kernel's measure: 10 is near.
    pub distances: BTreeMap<u32, u32>,
}

/// The machine. A kernel that knows no nodes of memory has one, number 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    pub processors: BTreeMap<u32, Processor>,
    pub nodes: BTreeMap<u32, MemoryNode>,
}

impl Topology {
    /// This machine.
    ///
    /// # Errors
    /// `/sys` does not tell.
    pub fn system() -> io::Result<Self> {
        Self::read(Path::new("/"))
    }

    /// The machine whose `/sys` and `/proc` are below `root`. Processors that are not online are left out.
    ///
    /// # Errors
    /// A file that every kernel has cannot be read, or is not in the expected form.
    pub fn read(root: &Path) -> io::Result<Self> {
        let files = Files(root.join("sys/devices/system"));
        let online = files.set("cpu/online")?;
        let members = node_members(&files)?;
        let mut nodes = BTreeMap::new();
        for number in members.iter().map(|(number, _)| *number) {
            nodes.insert(number, memory_node(&files, number, &members)?);
        }
        if nodes.is_empty() {
            nodes.insert(0, only_node(root)?);
        }
        let node_of = |cpu: u32| members.iter().find(|(_, cpus)| cpus.contains(cpu)).map_or(0, |(number, _)| *number);
        let processors =
            online.iter().map(|cpu| Ok((cpu, processor(&files, cpu, node_of(cpu))?))).collect::<io::Result<_>>()?;
        Ok(Self { processors, nodes })
    }
}

/// Files below a directory.
struct Files(PathBuf);

impl Files {
    fn line(&self, path: &str) -> io::Result<String> {
        std::fs::read_to_string(self.0.join(path)).map(|text| text.trim().to_owned())
    }

    fn set(&self, path: &str) -> io::Result<CpuSet> {
        self.line(path)?.parse().map_err(|error| malformed(path, &error))
    }

    fn number(&self, path: &str) -> io::Result<u32> {
        // The socket of a processor that has none is written as -1.
        let number: i64 = self.line(path)?.parse().map_err(|error| malformed(path, &error))?;
        Ok(u32::try_from(number).unwrap_or_default())
    }

    /// The numbers in the names of a directory's entries that begin with this.
    fn numbered(&self, directory: &str, prefix: &str) -> io::Result<Vec<u32>> {
        let entries = match std::fs::read_dir(self.0.join(directory)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
        let mut found: Vec<u32> = entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?)).collect();
        found.sort_unstable();
        Ok(found)
    }
}

fn malformed(path: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {error}"))
}

fn processor(files: &Files, cpu: u32, node: u32) -> io::Result<Processor> {
    let topology = format!("cpu/cpu{cpu}/topology");
    let siblings = files.set(&format!("{topology}/thread_siblings_list"))?;
    Ok(Processor {
        core: siblings.iter().next().unwrap_or(cpu),
        socket: files.number(&format!("{topology}/physical_package_id"))?,
        node,
        cache: shared_cache(files, cpu, siblings.len())?.unwrap_or(node),
    })
}

/// The first processor of the outermost cache that the processor's core shares with others.
fn shared_cache(files: &Files, cpu: u32, threads: usize) -> io::Result<Option<u32>> {
    let directory = format!("cpu/cpu{cpu}/cache");
    let mut outermost: Option<(u32, u32)> = None;
    for index in files.numbered(&directory, "index")? {
        let level = files.number(&format!("{directory}/index{index}/level"))?;
        // A virtual machine may show a level without saying who shares it.
        let Ok(shared) = files.set(&format!("{directory}/index{index}/shared_cpu_list")) else { continue };
        if level < SHARED_CACHE_LEVEL || shared.len() <= threads {
            continue;
        }
        if let Some(first) = shared.iter().next()
            && outermost.is_none_or(|(above, _)| level > above)
        {
            outermost = Some((level, first));
        }
    }
    Ok(outermost.map(|(_, first)| first))
}

fn node_members(files: &Files) -> io::Result<Vec<(u32, CpuSet)>> {
    let numbers = files.numbered("node", "node")?;
    numbers.into_iter().map(|number| Ok((number, files.set(&format!("node/node{number}/cpulist"))?))).collect()
}

fn memory_node(files: &Files, number: u32, all: &[(u32, CpuSet)]) -> io::Result<MemoryNode> {
    let path = format!("node/node{number}");
    let meminfo = files.line(&format!("{path}/meminfo"))?;
    let total =
        meminfo.lines().find_map(|line| line.split_once("MemTotal:")?.1.split_whitespace().next()?.parse().ok());
    let total: u64 = total.ok_or_else(|| malformed(&path, &"no MemTotal"))?;
    let distances = files.line(&format!("{path}/distance")).unwrap_or_default();
    let distances = distances.split_whitespace().map_while(|text| text.parse().ok());
    let huge_pages = huge_pages(&files.0.join(format!("{path}/hugepages")));
    Ok(MemoryNode {
        memory_bytes: total.saturating_mul(1024),
        huge_pages,
        distances: all.iter().map(|(node, _)| *node).zip(distances).collect(),
    })
}

/// Huge pages by size in bytes: how many there are, by a directory of the kernel's such as `/sys/kernel/mm/hugepages`.
#[must_use]
pub fn huge_pages(directory: &Path) -> BTreeMap<u64, u64> {
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let size = name.strip_prefix("hugepages-").and_then(|rest| rest.strip_suffix("kB")?.parse::<u64>().ok());
        let count = std::fs::read_to_string(entry.path().join("nr_hugepages")).ok();
        if let (Some(size), Some(count)) = (size, count.and_then(|text| text.trim().parse().ok())) {
            pages.insert(size.saturating_mul(1024), count);
        }
    }
    pages
}

/// The node of a kernel that knows none.
fn only_node(root: &Path) -> io::Result<MemoryNode> {
    let memory_bytes = Proc::at(root).memory()?.total_bytes;
    let huge_pages = huge_pages(&root.join("sys/kernel/mm/hugepages"));
    Ok(MemoryNode { memory_bytes, huge_pages, distances: [(0, 10)].into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    /// Two sockets, each a node of memory, with two cores of two threads; the cores of a socket share a cache.
    fn two_sockets(root: &Path) {
        let cpu = "sys/devices/system/cpu";
        put(root, &format!("{cpu}/online"), "0-7");
        for number in 0..8_u32 {
            let (core, socket) = (number % 4, number % 4 / 2);
            let own = format!("{cpu}/cpu{number}");
            put(root, &format!("{own}/topology/thread_siblings_list"), &format!("{core},{}", core + 4));
            put(root, &format!("{own}/topology/physical_package_id"), &socket.to_string());
            put(root, &format!("{own}/cache/index0/level"), "1");
            put(root, &format!("{own}/cache/index0/shared_cpu_list"), &format!("{core},{}", core + 4));
            put(root, &format!("{own}/cache/index3/level"), "3");
            let first = socket * 2;
            let shared = format!("{first}-{},{}-{}", first + 1, first + 4, first + 5);
            put(root, &format!("{own}/cache/index3/shared_cpu_list"), &shared);
        }
        for (number, cpus, distance) in [(0, "0-1,4-5", "10 21"), (1, "2-3,6-7", "21 10")] {
            let node = format!("sys/devices/system/node/node{number}");
            put(root, &format!("{node}/cpulist"), cpus);
            put(root, &format!("{node}/distance"), distance);
            put(
                root,
                &format!("{node}/meminfo"),
                &format!("Node {number} MemTotal:       2048 kB\nNode 0 MemFree: 1 kB"),
            );
            put(root, &format!("{node}/hugepages/hugepages-2048kB/nr_hugepages"), "3");
        }
    }

    #[test]
    fn a_machine_of_two_sockets_is_read() {
        let root = tempfile::tempdir().unwrap();
        two_sockets(root.path());
        let read = Topology::read(root.path()).unwrap();
        let place = |cpu: u32| read.processors[&cpu];
        assert_eq!(place(5), Processor { core: 1, socket: 0, node: 0, cache: 0 });
        assert_eq!(place(6), Processor { core: 2, socket: 1, node: 1, cache: 2 });
        assert_eq!(read.processors.len(), 8);
        let node = &read.nodes[&1];
        assert_eq!((node.memory_bytes, node.huge_pages[&(2 << 20)]), (2 << 20, 3));
        assert_eq!(node.distances, [(0, 21), (1, 10)].into());
    }

    #[test]
    fn processors_that_are_off_are_left_out_and_a_kernel_without_nodes_has_one() {
        let root = tempfile::tempdir().unwrap();
        two_sockets(root.path());
        std::fs::remove_dir_all(root.path().join("sys/devices/system/node")).unwrap();
        put(root.path(), "sys/devices/system/cpu/online", "0-3");
        put(root.path(), "proc/meminfo", "MemTotal: 1024 kB");
        put(root.path(), "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "1");
        let read = Topology::read(root.path()).unwrap();
        assert_eq!(read.processors.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
        let node = &read.nodes[&0];
        assert_eq!((read.nodes.len(), node.memory_bytes, node.huge_pages[&(1 << 30)]), (1, 1 << 20, 1));
        put(root.path(), "sys/devices/system/cpu/online", "0-x");
        let error = Topology::read(root.path()).unwrap_err();
        assert_eq!(error.to_string(), "cpu/online: \"x\" is no number");
    }
}
