//! Nothing, unless the tests in C are asked for: then those are compiled.

#[cfg(feature = "ctests")]
#[path = "ctests/build.rs"]
mod ctests;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "ctests")]
    ctests::main();
}
