//! A program that fails, made as short as it gets.

use crate::operation::Op;

/// Leaves operations out as long as what is left still fails: first many at once, then each alone.
pub(crate) fn shrink(program: &[Op], fails: impl Fn(&[Op]) -> bool) -> Vec<Op> {
    let mut program = program.to_vec();
    let mut part = program.len().div_ceil(2);
    loop {
        let before = program.len();
        let mut start = 0;
        while start < program.len() {
            let end = program.len().min(start + part);
            let rest = [&program[..start], &program[end..]].concat();
            if fails(&rest) {
                program = rest;
            } else {
                start = end;
            }
        }
        match (part, program.len() < before) {
            (1, false) => return program,
            (1, true) => {}
            _ => part = part.div_ceil(2),
        }
    }
}
