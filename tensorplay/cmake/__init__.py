"""The folder of tensorplayConfig.cmake, as the entry point `cmake.root` names it: op packs find it without a path."""
