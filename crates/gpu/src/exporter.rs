//! Which part of the kernel a dmabuf comes from. No other file has one.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};

/// The name of a dmabuf's exporter; `None` for any other file.
///
/// Asks the kernel alone, never the program that handed the file over.
#[must_use]
pub fn exporter(fd: &impl AsFd) -> Option<String> {
    let file = File::open(format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd())).ok()?;
    let mut info = String::new();
    // That of other files may be very long.
    file.take(MAX_INFO).read_to_string(&mut info).ok()?;
    named(&info).map(str::to_owned)
}

/// proc_pid_fdinfo(5) of a dmabuf has the lines `size`, `count`, `exp_name`, and perhaps `name`, which the program
/// chose.
fn named(info: &str) -> Option<&str> {
    info.lines().find_map(|line| line.strip_prefix("exp_name:")).map(str::trim)
}

/// Bytes that are looked at; what is said of a dmabuf takes a few hundred.
const MAX_INFO: u64 = 4096;

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn only_a_dmabuf_has_an_exporter() {
        let info =
            "pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t1\nsize:\t4096\ncount:\t1\nexp_name:\tudmabuf\n";
        assert_eq!(named(info), Some("udmabuf"));
        let lied = "pos:\t0\nsize:\t4096\nexp_name:\tvirtio_gpu\nname:\texp_name:\tudmabuf\n";
        assert_eq!(named(lied), Some("virtio_gpu"), "a name that the program chose is none of an exporter");
        let memory = memfd_create("exp_name:\tudmabuf", MemfdFlags::CLOEXEC).expect("memory");
        let (pipe, _other) = std::io::pipe().expect("a pipe");
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let directory = File::open("/").expect("a directory");
        assert_eq!((exporter(&memory), exporter(&pipe)), (None, None));
        assert_eq!((exporter(&socket), exporter(&directory)), (None, None));
    }
}
