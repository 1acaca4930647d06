bash -c 'git push; eval "$X"' <<EOF
rm x
EOF
