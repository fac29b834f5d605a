//! A program that fails, made as short as it gets.

/// Leaves parts out, operations or bytes, as long as what is left still fails: first many at once, then each alone.
pub(crate) fn shrink<T: Clone>(program: &[T], fails: impl Fn(&[T]) -> bool) -> Vec<T> {
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
