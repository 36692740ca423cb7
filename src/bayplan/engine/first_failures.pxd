# No C types: the module is compiled only to make its calls faster.
