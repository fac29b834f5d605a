# Stands at the root of a folder of its own; scripts/packages fills in the version and the repository.
{
  description = "Remote Wayland programs as windows of this desktop, over QUIC";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  inputs.wayferry = { url = "git+@REPOSITORY@.git?ref=refs/tags/v@VERSION@"; flake = false; };

  outputs = { self, nixpkgs, wayferry }:
    let
      each = nixpkgs.lib.genAttrs [ "x86_64-linux" "aarch64-linux" ];
      build = pkgs: pkgs.rustPlatform.buildRustPackage {
        pname = "wayferry";
        version = "@VERSION@";
        src = wayferry;
        cargoLock.lockFile = "${wayferry}/Cargo.lock";
        cargoBuildFlags = [ "--package" "wayferry" "--package" "wayferry-lab" ];
        nativeBuildInputs = [ pkgs.cmake pkgs.nasm pkgs.installShellFiles ];
        dontUseCmakeConfigure = true;
        # They need compositors, and run for minutes.
        doCheck = false;
        postInstall = ''
          mkdir pages && $out/bin/wayferry man --to pages && installManPage pages/*
          for shell in bash zsh fish; do
            $out/bin/wayferry completions $shell > wayferry.$shell && installShellCompletion wayferry.$shell
          done
          install -Dm644 -t $out/share/systemd/user dist/systemd/wayferry@.service
        '';
      };
    in { packages = each (system: { default = build nixpkgs.legacyPackages.${system}; }); };
}
