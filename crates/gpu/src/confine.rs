//! What a reader may not do: start programs, speak to anyone but its session, or act on other processes.
//!
//! A list of what is refused, not of what is allowed: drivers differ, and a reader belongs to the user whose programs
//! it serves. Files stay open to it, since drivers load code and keep shaders in files. Invariant: what a hostile
//! buffer makes of a driver ends with the reader, leaves no process behind, and reaches no network.

use std::collections::BTreeMap;

use rustix::process::{
    Resource, Rlimit, Signal, getpid, getrlimit, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::set_no_new_privs;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter_all_threads,
};

/// Takes rights and room from this process that no driver needs, for good. Without one of these it is no less right,
/// only less contained.
pub(crate) fn settle() {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let _ = set_no_new_privs(true);
    let limit = |resource, most: u64| {
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    };
    limit(Resource::Core, 0);
    // A driver that leaks fails sooner than the machine. Memory of a GPU and of buffers is not counted.
    limit(Resource::Data, MAX_DATA);
    // Where memory ends all the same, a reader is missed least.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    // Each buffer takes a descriptor, and the session passes the limit on that it has found.
    let open = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: open.maximum, ..open });
}

/// Refuses from now on what drivers need at most while they start, in all threads.
pub(crate) fn confine() {
    for program in filters().unwrap_or_default() {
        let _ = apply_filter_all_threads(&program);
    }
}

/// `None` where the kernel's calls are not known.
fn filters() -> Option<[BpfProgram; 2]> {
    let equal = |index: u8, op: SeccompCmpOp, value: u64| {
        let condition = SeccompCondition::new(index, SeccompCmpArgLen::Dword, op, value).ok()?;
        SeccompRule::new(vec![condition]).ok()
    };
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    #[cfg(target_arch = "x86_64")]
    refused.extend([libc::SYS_fork, libc::SYS_vfork].map(|call| (call, Vec::new())));
    // A thread, but no process; and a signal to itself, with which it aborts.
    let thread = libc::CLONE_THREAD.cast_unsigned().into();
    refused.insert(libc::SYS_clone, vec![equal(0, SeccompCmpOp::MaskedEq(thread), 0)?]);
    let own = getpid().as_raw_nonzero().get().cast_unsigned().into();
    refused.insert(libc::SYS_tgkill, vec![equal(0, SeccompCmpOp::Ne, own)?]);
    // Of itself it may ask.
    refused.insert(libc::SYS_prlimit64, vec![equal(0, SeccompCmpOp::Ne, 0)?]);
    // Signals to others when a file of its own changes.
    let commands = [libc::F_SETOWN, F_SETOWN_EX, F_SETSIG].map(|command| command.cast_unsigned().into());
    let any = |calls: &[u64]| -> Option<Vec<SeccompRule>> {
        calls.iter().map(|call| equal(1, SeccompCmpOp::Eq, *call)).collect()
    };
    refused.insert(libc::SYS_fcntl, any(&commands)?);
    refused.insert(libc::SYS_ioctl, any(&[FIOSETOWN, SIOCSPGRP])?);
    // Its flags are in memory, where a filter cannot look: where there is no such call, the other one is made.
    let unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let arch = std::env::consts::ARCH.try_into().ok()?;
    let program = |calls, errno: i32| {
        let refuse = SeccompAction::Errno(errno.cast_unsigned());
        SeccompFilter::new(calls, SeccompAction::Allow, refuse, arch).ok()?.try_into().ok()
    };
    Some([program(refused, libc::EPERM)?, program(unknown, libc::ENOSYS)?])
}

/// Of `fcntl.h` and of `asm/sockios.h`.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const FIOSETOWN: u64 = 0x8901;
const SIOCSPGRP: u64 = 0x8902;

/// System calls that are refused with any arguments.
const REFUSED: [i64; 52] = [
    // Programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // The network, and other processes' sockets.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Other processes.
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_kcmp,
    // Other users, roots and name spaces.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    // Parts of the kernel that no driver has use for and that many holes were found in.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_personality,
];

/// Bytes of a reader's own data: far above what drivers take.
const MAX_DATA: u64 = 4 << 30;
/// From 0, as it is for a session, to 1000.
const OOM_SCORE: &str = "500";

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::process::Command;

    use rustix::io::Errno;
    use rustix::process::{Pid, kill_process};
    use seccompiler::apply_filter;

    use super::*;

    /// In a thread of its own: what it loses it never gets back.
    #[test]
    #[expect(unsafe_code, reason = "no safe function does what is refused here")]
    fn a_confined_thread_reads_files_and_starts_threads_and_nothing_else() {
        let confined = std::thread::spawn(|| {
            for program in filters().expect("this machine's calls are known") {
                apply_filter(&program).expect("the kernel filters calls");
            }
            let refused = |error: std::io::Error| error.raw_os_error() == Some(Errno::PERM.raw_os_error());
            assert!(UdpSocket::bind("127.0.0.1:0").is_err_and(refused), "no network");
            assert!(Command::new("true").spawn().is_err_and(refused), "no programs");
            let parent = Pid::from_raw(getpid().as_raw_nonzero().get()).expect("a process");
            assert_eq!(kill_process(parent, Signal::CONT), Err(Errno::PERM), "no signals");
            let (socket, _other) = std::os::unix::net::UnixStream::pair().expect("what is not connected");
            assert_eq!(rustix::io::ioctl_fionbio(&socket, true), Ok(()), "other commands are not refused");
            // SAFETY: it takes numbers.
            let set = unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&socket), libc::F_SETOWN, 1) };
            assert_eq!((set, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EPERM)));
            assert!(std::fs::read("/proc/self/status").is_ok_and(|status| !status.is_empty()));
            let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().expect("what is not connected");
            drop(theirs);
            assert_eq!(std::io::Read::read(&mut ours, &mut [0]).expect("the end"), 0);
            std::thread::spawn(|| 7).join().expect("a thread")
        });
        assert_eq!(confined.join().expect("all of that holds"), 7);
    }
}
