set nocompatible noswapfile viminfo= ruler autoindent shiftwidth=4 expandtab
syntax on
