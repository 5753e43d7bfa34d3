"""The types of files (`-t`) that are known where there is no ripgrep: those in everyday use, as ripgrep has them."""

from __future__ import annotations

_GLOBS = {
    "asm": "*.S *.asm *.s",
    "awk": "*.awk",
    "bat batch": "*.bat",
    "c": "*.[chH] *.[chH].in *.cats",
    "clojure": "*.clj *.cljc *.cljs *.cljx",
    "cmake": "*.cmake CMakeLists.txt",
    "coffeescript": "*.coffee",
    "config": "*.cfg *.conf *.config *.ini",
    "cpp": "*.[ChH] *.[ChH].in *.[ch]pp *.[ch]pp.in *.[ch]xx *.[ch]xx.in *.cc *.cc.in *.hh *.hh.in *.inl",
    "cs csharp": "*.cs",
    "css": "*.css *.scss",
    "csv": "*.csv",
    "cuda": "*.cu *.cuh",
    "cython": "*.pxd *.pxi *.pyx",
    "dart": "*.dart",
    "diff": "*.diff *.patch",
    "docker": "*Dockerfile*",
    "elisp": "*.el",
    "elixir": "*.eex *.ex *.exs *.heex *.leex *.livemd",
    "elm": "*.elm",
    "erlang": "*.erl *.hrl",
    "fish": "*.fish",
    "fortran": "*.F *.F77 *.F90 *.F95 *.f *.f77 *.f90 *.f95 *.pfo",
    "fsharp": "*.fs *.fsi *.fsx",
    "go": "*.go",
    "gradle": "*.gradle *.gradle.kts gradle-wrapper.* gradle.properties gradlew gradlew.bat",
    "graphql": "*.graphql *.graphqls",
    "groovy": "*.gradle *.groovy",
    "h": "*.h *.hh *.hpp",
    "haskell": "*.c2hs *.cpphs *.hs *.hsc *.lhs",
    "hs": "*.hs *.lhs",
    "html": "*.ejs *.htm *.html",
    "java": "*.java *.jsp *.jspx *.properties",
    "jinja": "*.j2 *.jinja *.jinja2",
    "jl julia": "*.jl",
    "js": "*.cjs *.js *.jsx *.mjs *.vue",
    "json": "*.json *.sarif composer.lock",
    "jsonl": "*.jsonl",
    "jupyter": "*.ipynb *.jpynb",
    "kotlin": "*.kt *.kts",
    "less": "*.less",
    "lisp": "*.el *.jl *.lisp *.lsp *.sc *.scm",
    "lock": "*.lock package-lock.json",
    "log": "*.log",
    "lua": "*.lua",
    "make": (
        "*.mak *.mk Makefile.* [Gg][Nn][Uu]makefile [Gg][Nn][Uu]makefile.am [Gg][Nn][Uu]makefile.in "
        "[Mm]akefile [Mm]akefile.am [Mm]akefile.in"
    ),
    "markdown md": "*.markdown *.md *.mdown *.mdwn *.mdx *.mkd *.mkdn",
    "nim": "*.nim *.nimble *.nimf *.nims",
    "nix": "*.nix",
    "objc": "*.h *.m",
    "objcpp": "*.h *.mm",
    "ocaml": "*.ml *.mli *.mll *.mly",
    "org": "*.org *.org_archive",
    "perl": "*.PL *.perl *.pl *.plh *.plx *.pm *.t",
    "php": "*.php *.php3 *.php4 *.php5 *.php7 *.php8 *.pht *.phtml",
    "proto protobuf": "*.proto",
    "ps": "*.cdxml *.ps1 *.ps1xml *.psd1 *.psm1",
    "py python": "*.py *.pyi",
    "r": "*.R *.Rmd *.Rnw *.r *.rmd *.rnw",
    "readme": "*README README*",
    "rst": "*.rst",
    "ruby": "*.gemspec *.rake *.rb *.rbw .irbrc Gemfile Rakefile config.ru",
    "rust": "*.rs",
    "sass": "*.sass *.scss",
    "scala": "*.sbt *.scala",
    "sh": (
        "*.bash *.bashrc *.csh *.cshrc *.env *.ksh *.kshrc *.sh *.tcsh *.zsh .bash_login .bash_logout "
        ".bash_profile .bashrc .cshrc .env .kshrc .login .logout .profile .tcshrc .zlogin .zlogout "
        ".zprofile .zshenv .zshrc bash_login bash_logout bash_profile bashrc profile zlogin zlogout "
        "zprofile zshenv zshrc"
    ),
    "sql": "*.psql *.sql",
    "svelte": "*.svelte *.svelte.ts",
    "svg": "*.svg",
    "swift": "*.swift",
    "tex": "*.bib *.cls *.dtx *.ins *.ltx *.sty *.tex",
    "tf": "*.terraform.lock.hcl *.terraformrc *.tf *.tf.json *.tfrc *.tfvars *.tfvars.json terraform.rc",
    "toml": "*.toml Cargo.lock",
    "ts typescript": "*.cts *.mts *.ts *.tsx",
    "twig": "*.twig",
    "txt": "*.txt",
    "vb": "*.vb",
    "verilog": "*.sv *.svh *.v *.vh",
    "vhdl": "*.vhd *.vhdl",
    "vim": "*.vim .gvimrc .vimrc _gvimrc _vimrc gvimrc vimrc",
    "vue": "*.vue",
    "wgsl": "*.wgsl",
    "xml": "*.dtd *.rng *.sch *.xhtml *.xjb *.xml *.xml.dist *.xsd *.xsl *.xslt",
    "yaml": "*.yaml *.yml",
    "zig": "*.zig",
    "zsh": "*.zsh .zlogin .zlogout .zprofile .zshenv .zshrc zlogin zlogout zprofile zshenv zshrc",
}
_OTHERS = (
    "*.BUILD *.P *.Z *.[0-9][cEFMmpSx] *.[0-9lnpx] *.ac *.adb *.adoc *.ads *.agda *.aidl *.asc *.asciidoc *.ascx "
    "*.ascx.cs *.ascx.vb *.asp *.aspx *.aspx.cs *.aspx.vb *.ats *.automount *.avdl *.avpr *.avsc *.bazel *.bazelrc "
    "*.bb *.bbappend *.bbclass *.bp *.br *.bst *.bx *.bxm *.bxs *.bz2 *.bzl *.cabal *.carp *.cbor *.ceylon *.cfc "
    "*.cfm *.cmd *.cml *.cr *.creole *.cshtml *.csproj *.d *.dats *.def *.device *.dhall *.did *.dita *.ditamap "
    "*.ditaval *.dpr *.dts *.dtsi *.dtso *.dvc *.ebuild *.eclass *.ecr *.edn *.epp *.eps *.erb *.fbs *.fidl *.fnl "
    "*.fsproj *.fut *.g *.gap *.gd *.gi *.gleam *.gn *.gni *.gpr *.gz *.ha *.haml *.hats *.hbs *.hurl *.hy *.i *.idl "
    "*.idr *.ily *.inc *.janet *.k *.lagda *.lean *.lidr *.link *.ll *.lpr *.ly *.lz4 *.lzma *.m4 *.mako *.mao "
    "*.mediawiki *.min.css *.min.html *.min.js *.mint *.mo *.mojo *.mount *.p6 *.pas *.path *.pdf *.pl6 *.pm6 *.po "
    "*.pod *.pp *.prf *.pri *.pro *.proj *.prolog *.props *.ps *.purs *.qml *.qrc *.raku *.rakudoc *.rakumod "
    "*.rakutest *.rdoc *.re *.red *.reds *.rei *.res *.resi *.rkt *.robot *.s7i *.sats *.scd *.scdoc *.scope *.sd7 "
    "*.service *.sig *.skim *.slice *.slim *.slime *.sln *.slnf *.sml *.socket *.sol *.soy *.spark *.spec *.ssa "
    "*.styl *.swap *.target *.targets *.taskpaper *.tbz2 *.tcl *.texi *.textile *.tgz *.thrift *.timer *.tpl *.tst "
    "*.txz *.typ *.typoscript *.ui *.usd *.usda *.usdc *.vala *.vcl *.vcxproj *.vg *.vsh *.webidl *.widl *.wiki *.xz "
    "*.y *.yang *.zst *.zstd *Containerfile* *[.-]LICEN[CS]E* AGPL-*[0-9]* APACHE-*[0-9]* BSD-*[0-9]* BUILD CC-BY-* "
    "COPYING COPYING[.-]* COPYRIGHT COPYRIGHT[.-]* Dvcfile EULA EULA[.-]* GFDL-*[0-9]* GNU-*[0-9]* GPL-*[0-9]* "
    "Kconfig Kconfig.* LGPL-*[0-9]* LICEN[CS]E LICEN[CS]E[.-]* MIT-*[0-9]* MODULE.bazel MPL-*[0-9]* NOTICE "
    "NOTICE[.-]* OFL-*[0-9]* PATENTS PATENTS[.-]* PKGBUILD Projectfile UNLICEN[CS]E UNLICEN[CS]E[.-]* WORKSPACE "
    "WORKSPACE.bazel WORKSPACE.bzlmod agpl[.-]* alire.toml docker-compose.*.yml docker-compose.yml gpl[.-]* lgpl[.-]* "
    "licen[cs]e licen[cs]e.* meson.build meson.options meson_options.txt mkfile shard.yml"
)
"""What ripgrep's other types are about."""
TYPES = {name: tuple(globs.split()) for names, globs in _GLOBS.items() for name in names.split()}
"""By name, the globs of the names of its files."""
TYPES["all"] = tuple(dict.fromkeys(glob for globs in (*TYPES.values(), tuple(_OTHERS.split())) for glob in globs))
