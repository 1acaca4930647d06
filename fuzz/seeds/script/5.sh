cat <<'A' | sh -s
git push
A
[[ -f x ]] && { (rm x) }; python -c "import os"; ssh h rm x; xargs rm < l