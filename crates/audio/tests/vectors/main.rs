//! What is to be the same everywhere, here; `scripts/test-wasm` runs the same checks as WebAssembly.

mod checks;

#[test]
fn everything_is_as_it_was_written_down() {
    checks::CHECKS.iter().for_each(|(name, check)| {
        println!("{name}");
        check();
    });
}
