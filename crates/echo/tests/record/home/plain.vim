set nomodeline nocompatible
set noswapfile viminfo=
