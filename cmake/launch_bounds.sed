# How many threads a block of each kernel has, and how many blocks a processor is to hold: from this
# the assembler knows how many registers a thread may take. C has no words for it.
/^\.visible \.entry (rms_norm|rms_norm_by_four|top_k)\(/,/^\{/ s/^\) .*/)\n.maxntid 1024, 1, 1/
/^\.visible \.entry swiglu_halves\(/,/^\{/ s/^\) .*/)\n.maxntid 512, 1, 1\n.minnctapersm 1/
/^\.visible \.entry matmul_warpgroup_/,/^\{/ s/^\) .*/)\n.maxntid 256, 1, 1\n.minnctapersm 1/
/^\.visible \.entry attention_apart_/,/^\{/ s/^\) .*/)\n.maxntid 256, 1, 1\n.minnctapersm 2/
/^\.visible \.entry attention_step\(/,/^\{/ s/^\) .*/)\n.maxntid 256, 1, 1\n.maxnreg 112/
/^\.visible \.entry attention_masked_256\(/,/^\{/ s/^\) .*/)\n.maxntid 256, 1, 1\n.minnctapersm 1/
/^\.visible \.entry matmul_lanes/,/^\{/ s/^\) .*/)\n.maxntid 512, 1, 1\n.minnctapersm 1/
/^\.visible \.entry inspect\(/,/^\{/ s/^\) .*/)\n.maxntid 256, 1, 1\n.minnctapersm 2/
/^\.visible \.entry matmul_quants_1\(/,/^\{/ s/^\) .*/)\n.maxntid 256, 1, 1\n.minnctapersm 2/
/^\.visible \.entry matmul_quants_8\(/,/^\{/ s/^\) .*/)\n.maxntid 256, 1, 1\n.minnctapersm 1/
/^\.visible \.entry matmul_small_batch_/,/^\{/ s/^\) .*/)\n.maxntid 512, 1, 1\n.minnctapersm 1/
/^\.visible \.entry matmul_1tok_/,/^\{/ s/^\) .*/)\n.maxntid 512, 1, 1\n.maxnreg 72/
/^\.visible \.entry matmul_/,/^\{/ s/^\) .*/)\n.maxntid 256, 1, 1\n.minnctapersm 2/
/^\.visible \.entry /,/^\{/ s/^\)( .*)?$/)\n.maxntid 256, 1, 1/
